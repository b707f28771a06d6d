"""Table 1: six tasks with and without ELMo, beside the best result before (test set)."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Gain, Line, Quote, Table, make_command

TABLE = Table(
    title="Table 1: six tasks with and without ELMo (test set)",
    paper="table_1_test",
    split="test",
    lines=(
        Line("SQuAD", ("task=squad",), "squad", split="dev"),
        Line("SNLI", ("task=snli",), "snli"),
        Line("SRL", ("task=srl",), "srl"),
        Line("Coref", ("task=coref",), "coref"),
        Line("NER", ("task=ner",), "ner"),
        Line("SST-5", ("task=sst5",), "sst5"),
    ),
    columns=(
        Quote("previous best", "previous_sota"),
        Column("baseline", ("elmo.placement=none",), "baseline"),
        Column("ELMo", (), "elmo"),
        Gain("increase", "ELMo", "baseline", paper="increase_absolute"),
        Gain("error reduction", "ELMo", "baseline", relative=True, paper="increase_relative_error"),
    ),
    chart=True,
    notes=(
        "SQuAD's test set is not public",
        "the paper's SRL and coreference are OntoNotes; another corpus at data.root is not to be compared with it",
        "ELMo stands where the paper has it for each task (conf/task)",
    ),
)

main = make_command("table1", TABLE)

if __name__ == "__main__":
    run_command(main)
