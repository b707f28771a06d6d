"""Table 6: parts of speech by a linear classifier on one biLM layer (test set)."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Line, Quote, Table, make_command

TABLE = Table(
    title="Table 6: parts of speech by one linear layer on a biLM layer (test set, accuracy)",
    paper="table_6_pos_accuracy",
    split="test",
    lines=(Line("parts of speech", ("task=pos",), "tags"),),
    columns=(
        Column("word vectors", ("elmo.placement=none", "words=glove")),
        Column("layer 0", ("elmo.mix=layer_0",)),
        Column("layer 1", ("elmo.mix=layer_1",), "bilm_layer_1"),
        Column("layer 2", ("elmo.mix=layer_2",), "bilm_layer_2"),
        Quote("CoVe layer 1", "cove_layer_1"),
        Quote("CoVe layer 2", "cove_layer_2"),
    ),
    compare=(("layer 1", "layer 2"),),
)

main = make_command("table6", TABLE)

if __name__ == "__main__":
    run_command(main)
