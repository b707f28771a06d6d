"""Which rows belong together: the runs of one setting, one for each seed, and their averages."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from elmo_tasks.config.identity import own_words, relevant, setting_key
from elmo_tasks.rows.collection import moment
from elmo_tasks.rows.fields import Place, Split
from elmo_tasks.rows.parts import Mix
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import flat

SEEDS_THAT_MAY_RISE = 1 / 5
"""The share of seeds that may not have converged: one of five."""


class InputDigests(NamedTuple):
    """Digests of what a run read.

    Attributes:
        data: files of train and dev.
        word_vectors: the user's own file; None without one.
        bilm: its weights (for a language model its initial ones); None without any.
        warm: the text that warmed the biLM up; None without one.
    """

    data: str
    word_vectors: str | None
    bilm: str | None
    warm: str | None


def inputs(row: Row) -> InputDigests:
    """What a run read: runs of other inputs are never averaged."""
    if row.language_model is not None:
        initial = row.language_model.initial
        return InputDigests(row.data.digest, None, None if initial is None else initial.digest, None)
    bilm, warm = (None, None) if row.bilm is None else (row.bilm.digest, row.bilm.warm)
    return InputDigests(row.data.digest, row.data.word_vectors, bilm, warm)


def words_read(row: Row) -> str | None:
    """The user's word vectors: their digest, or the path where it was not recorded; None without any."""
    return row.data.word_vectors or own_words(row.config, row.kind)


def data_digests(row: Row, split: Split) -> tuple[str, str | None]:
    """Digests of the data on which the score of a split rests: train and dev, and for the test score, test."""
    return row.data.digest, row.data.test_digest if split == "test" else None


@dataclass(frozen=True)
class Group:
    """Rows that differ in nothing but their seed.

    Args:
        rows: the newest one for each seed, by seed.
        older: rows that a newer one replaces.
    """

    rows: tuple[Row, ...]
    older: tuple[Row, ...] = ()

    @property
    def first(self) -> Row:
        return self.rows[0]

    @cached_property
    def setting(self) -> dict[str, Any]:
        """What of the configuration can change a score, by dotted key."""
        return flat(relevant(self.first.config, self.first.kind))

    @property
    def placement(self) -> str:
        """Where ELMo enters."""
        return "none" if self.first.elmo is None else self.first.elmo.placement

    @property
    def dev_scores(self) -> list[float]:
        """The dev score of each seed."""
        return self.scores("dev", self.first.metric.name)

    def scores(self, split: Split, name: str) -> list[float]:
        """One score of each seed; empty if a seed has none on this split, or if the test sets differ."""
        found = [row.scores[split][name] for row in self.rows if split in row.scores]
        return [] if self.why_unscored(split) else found

    def why_unscored(self, split: Split) -> str:
        """Why scores of some seeds make no mean; empty if they do, or if no seed has a score."""
        scored = [row for row in self.rows if split in row.scores]
        if 0 < len(scored) < len(self.rows):
            return f"{len(scored)} of {len(self.rows)} seeds have a score"
        if len({data_digests(row, split) for row in scored}) > 1:
            return "the seeds were scored on different files"
        return ""


def groups(rows: Iterable[Row]) -> list[Group]:
    """All rows by setting, input files, metric and (for ensembles) members, in order of task and name."""
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        seeds = None if row.ensemble is None else row.ensemble.seeds
        words = words_read(row)
        found[row.kind, setting_key(row.config, row.kind), inputs(row), words, row.metric, seeds].append(row)
    made = [_group(members) for members in found.values()]
    return sorted(made, key=lambda group: (group.first.task, group.first.slug, group.first.run_id))


def _group(rows: Sequence[Row]) -> Group:
    newest = {row.seed: row for row in sorted(rows, key=moment)}
    kept = tuple(sorted(newest.values(), key=lambda row: row.seed or 0))
    return Group(kept, tuple(row for row in rows if newest[row.seed] is not row))


def still_rising(rows: Iterable[Row]) -> bool:
    """Whether more than one run of five had not converged, so that their mean says too little.

    A language model is trained for the epochs that were asked for, whether or not it converges.
    """
    converged = [row.converged for row in rows if row.kind != "language_model"]
    return converged.count(False) > SEEDS_THAT_MAY_RISE * len(converged)


def average_mix(rows: Iterable[Row], place: Place) -> Mix:
    """Means over seeds of what the mixes of one place learned: weights by layer, and gamma."""
    mixes = [row.elmo.weights[place] for row in rows if row.elmo is not None]
    s = tuple(statistics.fmean(layer) for layer in zip(*(mix.s for mix in mixes), strict=True))
    return Mix(s=s, gamma=statistics.fmean(mix.gamma for mix in mixes))


def mean_text(values: Sequence[float], digits: int = 2) -> str:
    """``66.64 ± 0.91``, or ``-`` without any value."""
    if not values:
        return "-"
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{deviation}"
