"""Table 3: ELMo at the input, at the output, or at both (development set)."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Line, Table, make_command

TABLE = Table(
    title="Table 3: where ELMo enters (development set)",
    paper="table_3_placement_dev",
    split="dev",
    lines=(
        Line("SQuAD", ("task=squad",), "squad"),
        Line("SNLI", ("task=snli",), "snli"),
        Line("SRL", ("task=srl",), "srl"),
    ),
    columns=(
        Column("input only", ("elmo.placement=input",), "input_only"),
        Column("input and output", ("elmo.placement=both",), "input_and_output"),
        Column("output only", ("elmo.placement=output",), "output_only"),
    ),
    compare=(("input and output", "input only"), ("input only", "output only")),
    notes=("the paper's SRL is OntoNotes; another corpus at data.root is not to be compared with its values",),
)

main = make_command("table3", TABLE)

if __name__ == "__main__":
    run_command(main)
