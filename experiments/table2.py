"""Table 2: all layers of the biLM against its last one, and the penalty lambda (development set)."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Line, Table, make_command

TABLE = Table(
    title="Table 2: all layers or the last one (development set)",
    paper="table_2_layer_weighting_dev",
    split="dev",
    lines=(
        Line("SQuAD", ("task=squad",), "squad"),
        Line("SNLI", ("task=snli",), "snli"),
        Line("SRL", ("task=srl",), "srl"),
    ),
    columns=(
        Column("baseline", ("elmo.placement=none",), "baseline"),
        Column("last only", ("elmo.mix=last",), "last_only"),
        Column("all layers, lambda 1", ("elmo.lambda=1",), "all_lambda_1"),
        Column("all layers, lambda 0.001", ("elmo.lambda=0.001",), "all_lambda_0_001"),
    ),
    compare=(
        ("last only", "baseline"),
        ("all layers, lambda 0.001", "last only"),
        ("all layers, lambda 0.001", "all layers, lambda 1"),
    ),
    notes=("the paper's SRL is OntoNotes; another corpus at data.root is not to be compared with its values",),
)

main = make_command("table2", TABLE)

if __name__ == "__main__":
    run_command(main)
