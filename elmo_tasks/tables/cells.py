"""The cells of a table: the rows of one setting, and their scores."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from elmo_tasks.rows.fields import Split
from elmo_tasks.rows.grouping import data_digests, inputs, still_rising
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.paper import Value
from elmo_tasks.tables.settings import Setting

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
    """The rows of one setting, and their scores.

    Args:
        setting: the setting that a table asks for.
        split: the split whose score is shown.
        seeds: the seeds that the table asks for; of an ensemble, its members.
        ensemble: whether it is one row of an ensemble (under the key 0) instead of one for each seed.
        rows: by seed.
        trained: the rows whose training the score rests on: for an ensemble, those of its members that have rows.
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
