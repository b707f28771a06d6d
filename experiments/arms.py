"""The search, and each arm at its best: baseline and ELMo with what it chose, and ELMo at the baseline's settings.

The search is declared in ``experiments/grids.py``; the rules are in docs/protocol.md.
"""

from __future__ import annotations

from elmo_tasks.command_line import run_command
from elmo_tasks.tables import Column, Gain, Line, Table, make_command

from .grids import BASELINE, ELMO_DROPOUT, GRID, GRIDS, NAMES

BEST: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sst5": ((), ("elmo.dropout=0.4",)),
    "ner": (("task.model.dropout=0.3",), ()),
    "snli": (("task.model.hidden=150",), ("task.model.dropout=0.3",)),
    "srl": ((), ("elmo.dropout=0",)),
    "coref": (("task.model.lexical_dropout=0.3",), ("task.model.lexical_dropout=0.3",)),
    "squad": (("task.model.dropout=0.1",), ("task.model.dropout=0.1",)),
}
"""Overrides of each arm's best configuration, the baseline's and ELMo's."""

DEV_ONLY = ("squad",)
"""Tasks whose test set is not public."""


def arms(task: str) -> Table:
    """The two arms of one task, five seeds.

    Where both arms are best with the same settings, there is one column with ELMo.
    """
    split = "dev" if task in DEV_ONLY else "test"
    baseline, elmo = BEST[task]
    differ = baseline != elmo
    same = "ELMo at the baseline's settings" if differ else "ELMo"
    columns = [Column("baseline", (*BASELINE, *baseline)), Column(same, baseline)]
    gains = [Gain("increase, same settings", same, "baseline")]
    if differ:
        columns.append(Column("ELMo", elmo))
        gains.append(Gain("increase, each at its best", "ELMo", "baseline"))
    return Table(
        title=f"{NAMES[task]}: each arm at its best ({split} set)",
        split=split,
        lines=(Line(NAMES[task], (f"task={task}",)),),
        columns=(*columns, *gains),
    )


TABLES = (GRID, ELMO_DROPOUT, *map(arms, GRIDS))

main = make_command("arms", *TABLES)

if __name__ == "__main__":
    run_command(main)
