"""The search, and each arm at its best: baseline and ELMo with what it chose, and ELMo at the baseline's settings.

The search is declared in ``experiments/grids.py``; the rules are in docs/protocol.md.
"""

from __future__ import annotations

from elmo_tasks.tables import Column, Gain, Line, Table, main

from .grids import BASELINE, ELMO_DROPOUT, GRID, GRIDS, NAMES

BEST_BASELINE: dict[str, tuple[str, ...]] = {task: () for task in GRIDS}
"""Overrides of the baseline's best line in the search; none: as configured."""

BEST_ELMO: dict[str, tuple[str, ...]] = {task: () for task in GRIDS} | {"sst5": ("elmo.dropout=0.4",)}
"""Overrides of ELMo's best line in the search, and its best dropout: ``elmo.dropout=...``."""

DEV_ONLY = ("squad",)
"""Tasks whose test set is not public."""


def arms(task: str) -> Table:
    """The two arms of one task, five seeds."""
    split = "dev" if task in DEV_ONLY else "test"
    return Table(
        title=f"{NAMES[task]}: each arm at its best ({split} set)",
        split=split,
        lines=(Line(NAMES[task], (f"task={task}",)),),
        columns=(
            Column("baseline", (*BASELINE, *BEST_BASELINE[task])),
            Column("ELMo at the baseline's settings", BEST_BASELINE[task]),
            Column("ELMo", BEST_ELMO[task]),
            Gain("increase, same settings", "ELMo at the baseline's settings", "baseline"),
            Gain("increase, each at its best", "ELMo", "baseline"),
        ),
    )


TABLES = (GRID, ELMO_DROPOUT, *map(arms, GRIDS))

if __name__ == "__main__":
    main(*TABLES)
