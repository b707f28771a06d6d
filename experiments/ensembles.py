"""Ensembles of the paper's supplement: five members for SNLI, eleven for SQuAD."""

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Gain, Line, Table, make_command

TABLE = Table(
    title="Ensembles (tables 8 and 9 of the supplement, test set)",
    paper="ensembles_test",
    split="test",
    lines=(
        Line("SNLI", ("task=snli",), "snli", members=5),
        Line("SQuAD", ("task=squad",), "squad", split="dev", members=11),
    ),
    columns=(
        Column("single models", (), "single"),
        Column("ensemble", (), "ensemble", ensemble=True),
        Gain("increase", "ensemble", "single models"),
    ),
    notes=("SQuAD's test set is not public",),
)

main = make_command("ensembles", TABLE)

if __name__ == "__main__":
    run_command(main)
