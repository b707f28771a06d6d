"""What a better biLM brings: the two bundled English ones side by side (test set); not in the paper."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Gain, Line, Table, make_command

TABLE = Table(
    title="The two bundled English biLMs (test set)",
    split="test",
    lines=(Line("SST-5", ("task=sst5",)), Line("NER", ("task=ner",)), Line("SNLI", ("task=snli",))),
    columns=(
        Column("baseline", ("elmo.placement=none",)),
        Column("mini", ()),
        Column("small", ("bilm=small",)),
        Gain("mini - baseline", "mini", "baseline"),
        Gain("small - baseline", "small", "baseline"),
        Gain("small - mini", "small", "mini"),
    ),
    seeds=3,
    other_bilm=True,
)

main = make_command("bilms", TABLE)

if __name__ == "__main__":
    run_command(main)
