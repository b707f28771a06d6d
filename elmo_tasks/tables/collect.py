"""Collect the cells of a declaration: what it asks for, with the setting that the rows have for it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from elmo_tasks.errors import UserError
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.fields import Split
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import Setting
from elmo_tasks.tables.declare import Line
from elmo_tasks.tables.digests import digest_bundled, files_at_hand
from elmo_tasks.tables.paper import Value, value
from elmo_tasks.tables.wanted import Wanted, compose_wanted

RISING = "still rising"

MARKS = {
    "a": "fewer seeds than asked for",
    "b": "rows of different commits",
    "c": "a row of a working tree with changes that were not committed, or of no known commit",
    "d": "not all items of a split were used (data.fraction)",
    "e": "a seed with two rows of this setting: the newer one is shown",
    "f": "rows of other data, vectors or weights are left out; without data.root=DIR those with the most seeds count",
}


@dataclass(frozen=True)
class Cell:
    """What a table asks for, and the rows that there are.

    Args:
        wanted: the configuration that is asked for.
        split: the split whose score is shown.
        seeds: the seeds that the table asks for; of an ensemble, its members.
        ensemble: whether it is one row of an ensemble (under the key 0) instead of one for each seed.
        setting: the rows.
        marks: keys of :data:`MARKS`.
        paper: the paper's value.
        needs_weights: whether the runs have to be repeated, because another cell reads the biLM that they wrote and its
            files are gone.
    """

    wanted: Wanted
    split: Split
    seeds: tuple[int, ...]
    ensemble: bool
    setting: Setting
    marks: tuple[str, ...] = ()
    paper: Value | None = None
    needs_weights: bool = False

    @property
    def rows(self) -> dict[int, Row]:
        """By seed."""
        return self.setting.by_seed

    @property
    def values(self) -> dict[int, float]:
        """The score of each seed."""
        return self.setting.scores(self.split)

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.values.values()) if self.rows else None

    @property
    def missing(self) -> tuple[int, ...]:
        """Seeds without a row (0 for an ensemble)."""
        return tuple(seed for seed in ((0,) if self.ensemble else self.seeds) if seed not in self.rows)

    @property
    def has_earlier_weights(self) -> bool:
        """Whether the rows are of an earlier version of the bundled weights."""
        return bool(self.rows) and digest_bundled(self.wanted) not in (None, self.setting.first.inputs.bilm)

    @property
    def due(self) -> tuple[int, ...]:
        """Seeds (0 for an ensemble) that have to be run: those without a row, and all of them if the rows are of an
        earlier version of the bundled weights.
        """
        if self.has_earlier_weights:
            return (0,) if self.ensemble else self.seeds
        return self.missing


def find_cell(
    rows: Rows,
    wanted: Wanted,
    *,
    split: Split,
    seeds: tuple[int, ...],
    ensemble: bool = False,
    paper: Value | None = None,
    bilm: str | None = None,
) -> Cell:
    """The cell of a configuration; see :meth:`elmo_tasks.rows.collection.Rows.find` for which rows count.

    Args:
        rows: all rows that were read.
        wanted: the configuration.
        split: the split whose score is wanted.
        seeds: the seeds that are wanted, or the members of an ensemble.
        ensemble: whether one row of an ensemble is wanted.
        paper: the paper's value.
        bilm: digest of the biLM, if it is known although its files may be gone.

    Raises:
        UserError: if there is no folder of a name that the configuration has, and if the rows are of different metrics.
    """
    setting, others = rows.find(wanted.key, split, seeds, files_at_hand(wanted, bilm), ensemble=ensemble)
    code = [code for row in setting.rows for code in row.code]
    marks = {
        "a": 0 < len(setting.rows) < (1 if ensemble else len(seeds)),
        "b": len({one.commit for one in code}) > 1,
        "c": any(one.dirty is not False for one in code),
        "d": any(_is_limited(row, split) for row in setting.rows),
        "e": bool(setting.older),
        "f": others,
    }
    shown = tuple(mark for mark, holds in marks.items() if holds)
    return Cell(wanted, split, seeds, ensemble, setting, shown, paper)


def _is_limited(row: Row, split: Split) -> bool:
    items = [row.data.items[name] for name in ("train", split) if name in row.data.items]
    return any(part.used != part.original for part in items)


@dataclass(frozen=True)
class Choice:
    """What the command line says of all cells.

    Args:
        overrides: of the configuration, before those of the declaration, which win.
        seeds: how many, where it is not the declaration's number.
        tasks: the lines that are shown; empty for all.
    """

    overrides: tuple[str, ...] = ()
    seeds: int | None = None
    tasks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Selection:
    """What cells are selected from and by: the rows that were read, and the choices of the command line."""

    rows: Rows
    choice: Choice

    def want(self, overrides: tuple[str, ...]) -> Wanted:
        """The configuration of a declaration's overrides.

        Raises:
            UserError: for an unknown key or value of the configuration.
        """
        return compose_wanted((*self.choice.overrides, *overrides))

    def shown(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """The lines of the chosen tasks."""
        tasks = self.choice.tasks
        return tuple(line for line in lines if not tasks or tasks & {*named_tasks(line.overrides)})

    def find(
        self,
        overrides: tuple[str, ...],
        *,
        split: Split,
        seeds: int,
        ensemble: bool = False,
        paper: Value | None = None,
        bilm: str | None = None,
    ) -> Cell:
        """The cell of a setting; a number of seeds (or members) on the command line replaces the declared one.

        A setting in which nothing is trained, such as the nearest sense means, is deterministic: one seed is all.

        Raises:
            UserError: for an unknown key or value of the configuration, and for an ensemble of one.
        """
        n = self.choice.seeds or seeds
        if ensemble and n < 2:
            raise UserError(f"seeds={n}: an ensemble has two or more members")
        asked = self.want(overrides)
        chosen = tuple(range(1, n + 1)) if asked.trains else (1,)
        return find_cell(self.rows, asked, split=split, seeds=chosen, ensemble=ensemble, paper=paper, bilm=bilm)


def paper_value(section: str, line: Line, key: str) -> Value | None:
    """The paper's value under a section, a line and a key, if all three are named."""
    return value(f"{section}.{line.paper}.{key}") if section and line.paper and key else None


def named_tasks(overrides: tuple[str, ...]) -> list[str]:
    """The tasks that overrides name."""
    return [text.removeprefix("task=") for text in overrides if text.startswith("task=")]
