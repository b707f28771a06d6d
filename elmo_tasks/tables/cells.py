"""From rows to the cells of a table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from elmo_tasks.errors import UserError
from elmo_tasks.rows.collection import Rows, moment
from elmo_tasks.rows.fields import Split
from elmo_tasks.rows.grouping import data_digests, inputs, still_rising
from elmo_tasks.rows.parts import Code
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.digests import digest_bilm, digest_data
from elmo_tasks.tables.paper import Value
from elmo_tasks.tables.settings import Setting

RISING = "still rising"

MARKS = {
    "a": "fewer seeds than asked for",
    "b": "rows of different commits",
    "c": "a row of a working tree with changes that were not committed, or of no known commit",
    "d": "not all items of a split were used (data.fraction)",
    "e": "a seed with two rows of this setting: the newer one is shown",
    "f": "rows of other data, vectors or weights left out: those of the files at hand count, or of the newest row",
}


@dataclass(frozen=True)
class Cell:
    """The rows of one setting, and their scores.

    Args:
        setting: that was asked for.
        split: whose score it is.
        seeds: that were asked for; of an ensemble, its members.
        ensemble: whether it is one row of an ensemble (under the key 0) instead of one for each seed.
        rows: by seed.
        trained: the rows whose training the score rests on: of an ensemble, its members as far as they are there.
        marks: keys of :data:`MARKS`.
        paper: the paper's value.
        needs_weights: whether the runs have to be repeated, because another cell reads the biLM that they wrote and its
            files are gone.
    """

    setting: Setting
    split: Split
    seeds: tuple[int, ...]
    ensemble: bool
    rows: dict[int, Row]
    trained: tuple[Row, ...] = ()
    marks: tuple[str, ...] = ()
    paper: Value | None = None
    needs_weights: bool = False

    @property
    def values(self) -> dict[int, float]:
        """The score of each seed."""
        return {seed: row.scores[self.split][row.metric.name] for seed, row in self.rows.items()}

    @property
    def rising(self) -> bool:
        """Whether too many of the runs had not converged (see :func:`elmo_tasks.rows.grouping.still_rising`)."""
        return still_rising(self.trained)

    @property
    def missing(self) -> tuple[int, ...]:
        """Seeds without a row (0 for an ensemble)."""
        return tuple(seed for seed in ((0,) if self.ensemble else self.seeds) if seed not in self.rows)

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.values.values()) if self.rows else None

    @property
    def data_digests(self) -> tuple[str, str | None] | None:
        """Of the data files that the score rests on, the same for all rows; None without rows."""
        return next((data_digests(row, self.split) for row in self.rows.values()), None)

    @property
    def word_vectors(self) -> str | None:
        """Digest of the user's own file of word vectors, the same for all rows; None without one."""
        return next((inputs(row).word_vectors for row in self.rows.values()), None)

    @property
    def bilm_digest(self) -> str | None:
        """Of the biLM's weights that were read, or started from, the same for all rows; None where there are none."""
        return next((inputs(row).bilm for row in self.rows.values()), None)


def find_cell(
    rows: Rows,
    setting: Setting,
    *,
    split: Split,
    seeds: tuple[int, ...],
    ensemble: bool = False,
    paper: Value | None = None,
    bilm: str | None = None,
) -> Cell:
    """The rows of a setting that have a score on ``split``, one for each seed.

    Rows of different data files, word vectors or biLM weights are never averaged, even under the same names. The files
    that ``data.root`` and ``bilm.path`` name decide which rows count; without them, the newest row does.

    Args:
        rows: that were read.
        setting: of the cell.
        split: whose score is wanted.
        seeds: that are wanted, or the members of an ensemble.
        ensemble: whether one row of an ensemble is wanted.
        paper: the paper's value.
        bilm: digest of the biLM, if it is known although its files may be gone.

    Raises:
        UserError: if a folder that the setting names is not there, and if the rows are of different metrics.
    """
    asked = [row for row in rows.by_setting.get(setting.key, ()) if split in row.scores]
    if ensemble:
        candidates = [row for row in asked if row.ensemble is not None and row.ensemble.seeds == tuple(sorted(seeds))]
    else:
        candidates = [row for row in asked if row.ensemble is None and row.seed in seeds]
    candidates.sort(key=moment)
    data, bilm = digest_data(setting), bilm or digest_bilm(setting)
    kept = [row for row in candidates if _fits(data, data_digests(row, split)) and bilm in (None, inputs(row).bilm)]
    kept = [row for row in kept if _read_the_same(row, kept[-1], split)]
    chosen = {row.seed or 0: row for row in kept}
    if len({row.metric.name for row in chosen.values()}) > 1:
        found = ", ".join(f"{row.run_id} ({row.metric.name})" for row in chosen.values())
        raise UserError(f"rows of one setting must have one metric, found {found}; move those that are wrong elsewhere")
    marks = {
        "a": 0 < len(chosen) < (1 if ensemble else len(seeds)),
        "b": len({code.commit for row in chosen.values() for code in _code(row)}) > 1,
        "c": any(code.dirty is not False for row in chosen.values() for code in _code(row)),
        "d": any(_is_limited(row, split) for row in chosen.values()),
        "e": len(kept) > len(chosen),
        "f": len(kept) < len(candidates),
    }
    return Cell(
        setting=setting,
        split=split,
        seeds=seeds,
        ensemble=ensemble,
        rows=dict(sorted(chosen.items())),
        trained=tuple(_members(rows, setting, chosen.values()) if ensemble else chosen.values()),
        marks=tuple(mark for mark, holds in marks.items() if holds),
        paper=paper,
    )


def _fits(wanted: tuple[str | None, ...], found: tuple[str | None, ...]) -> bool:
    """Whether digests are those that are wanted; None is any, and a dev score rests on no test data."""
    return all(None in (one, other) or one == other for one, other in zip(wanted, found, strict=True))


def _read_the_same(row: Row, other: Row, split: Split) -> bool:
    return inputs(row) == inputs(other) and data_digests(row, split) == data_digests(other, split)


def _members(rows: Rows, setting: Setting, ensembles: Iterable[Row]) -> list[Row]:
    names = {member.run_id for row in ensembles if row.ensemble is not None for member in row.ensemble.members}
    return [row for row in rows.by_setting.get(setting.key, ()) if row.run_id in names]


def _code(row: Row) -> list[Code]:
    """The code that a row was made with: a run that was resumed may have been trained with several versions."""
    trained = () if row.training is None else row.training.code
    return [Code(commit=row.commit, dirty=row.dirty), *trained]


def _is_limited(row: Row, split: Split) -> bool:
    items = [row.data.items[name] for name in ("train", split) if name in row.data.items]
    return any(part.used != part.original for part in items)
