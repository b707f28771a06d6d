"""Table 5: word senses by the nearest sense mean in one biLM layer (the four test sets of the unified framework)."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Line, Quote, Table, make_command

TABLE = Table(
    title="Table 5: word senses by nearest neighbour in one layer (test sets, F1)",
    paper="table_5_wsd_f1",
    split="test",
    seeds=1,
    lines=(Line("word senses", ("task=wsd",), "senses"),),
    columns=(
        Column("first sense", ("elmo.placement=none",), "wordnet_first_sense"),
        Column("layer 0", ("elmo.mix=layer_0",)),
        Column("layer 1", ("elmo.mix=layer_1",), "bilm_layer_1"),
        Column("layer 2", ("elmo.mix=layer_2",), "bilm_layer_2"),
        Quote("CoVe layer 1", "cove_layer_1"),
        Quote("CoVe layer 2", "cove_layer_2"),
    ),
    notes=("nothing is trained, so that there is one seed; bilm=cove gives CoVe's columns",),
)

main = make_command("table5", TABLE)

if __name__ == "__main__":
    run_command(main)
