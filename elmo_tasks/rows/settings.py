"""A setting: the rows that differ in nothing but their seed, and what they say together."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from elmo_tasks.config.identity import relevant, short_digest
from elmo_tasks.rows.fields import Place, Placement, Split
from elmo_tasks.rows.parts import Mix
from elmo_tasks.rows.schema import FailedRow, Row

SEEDS_THAT_MAY_RISE = 1 / 5
"""The share of seeds that may not have converged: one of five."""


@dataclass(frozen=True)
class Setting:
    """Rows that differ in nothing but their seed.

    Args:
        rows: the newest one of each seed, by seed; there may be none.
        older: rows that a newer one replaces.
        trained: the rows whose training the scores rest on: for an ensemble, those of its members that have rows.
    """

    rows: tuple[Row, ...]
    older: tuple[Row, ...] = ()
    trained: tuple[Row, ...] = ()

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def by_seed(self) -> dict[int, Row]:
        """The rows by seed; an ensemble is under 0."""
        return {row.seed or 0: row for row in self.rows}

    @cached_property
    def keys(self) -> dict[str, Any]:
        """What of the configuration can change a score, by dotted key."""
        return flat(relevant(self.first.config, self.first.kind))

    @property
    def placement(self) -> Placement:
        """Where ELMo enters."""
        return self.first.placement

    @property
    def rising(self) -> bool:
        """Whether more than one run of five had not converged, so that their mean says too little."""
        return still_rising(self.trained)

    @property
    def newest(self) -> datetime:
        """When the last of the rows was written."""
        return max(moment(row) for row in self.rows)[0]

    def scores(self, split: Split, name: str = "") -> dict[int, float]:
        """One score of each seed: the metric's own, or another that is named.

        Empty if a seed has none on this split, or if the test sets differ.
        """
        if self.why_unscored(split):
            return {}
        scored = {seed: row for seed, row in self.by_seed.items() if split in row.scores}
        return {seed: row.scores[split][name or row.metric.name] for seed, row in scored.items()}

    def why_unscored(self, split: Split) -> str:
        """Why scores of some seeds make no mean; empty if they do, or if no seed has a score."""
        scored = [row for row in self.rows if split in row.scores]
        if 0 < len(scored) < len(self.rows):
            return f"{len(scored)} of {len(self.rows)} seeds have a score"
        if len({row.data_digests(split) for row in scored}) > 1:
            return "the seeds were scored on different files"
        return ""

    def mixes(self) -> dict[Place, Mix]:
        """Means over seeds of what the mix of each place learned; none if :meth:`why_no_mix` says so."""
        learned = [] if self.why_no_mix() else self._learned()
        return {
            place: Mix(
                s=tuple(statistics.fmean(layer) for layer in zip(*(mixes[place].s for mixes in learned), strict=True)),
                gamma=statistics.fmean(mixes[place].gamma for mixes in learned),
            )
            for place in (learned[0] if learned else ())
        }

    def why_no_mix(self) -> str:
        """Why the mixes of the seeds make no mean; empty if they do, or if there are none."""
        shapes = {tuple((place, len(mix.s)) for place, mix in sorted(mixes.items())) for mixes in self._learned()}
        return "the seeds' mixes differ in their places or their numbers of layers" if len(shapes) > 1 else ""

    def _learned(self) -> list[dict[Place, Mix]]:
        return [row.elmo.weights for row in self.rows if row.elmo is not None]


def newest_of_each_seed(rows: Sequence[Row], all_rows: Mapping[str, Row]) -> Setting:
    """A setting of some rows, oldest first, that differ in their seed alone.

    Args:
        rows: of the setting; of two rows of one seed the newer counts.
        all_rows: by name, where an ensemble's members are looked for.
    """
    newest = {row.seed: row for row in rows}
    kept = tuple(sorted(newest.values(), key=lambda row: row.seed or 0))
    members = {member.run_id for row in kept for member in row.members}
    trained = tuple(all_rows[name] for name in sorted(members) if name in all_rows)
    return Setting(kept, tuple(row for row in rows if newest[row.seed] is not row), trained if members else kept)


def moment(row: Row | FailedRow) -> tuple[datetime, str]:
    """When a row was written; of two rows of one second the later name counts as newer."""
    return datetime.fromisoformat(row.created), row.run_id


def still_rising(rows: Iterable[Row]) -> bool:
    """Whether more than one run of five had not converged.

    A language model is trained for the epochs that were asked for, whether or not it converges.
    """
    converged = [row.converged for row in rows if row.kind != "language_model"]
    return converged.count(False) > SEEDS_THAT_MAY_RISE * len(converged)


def mean_text(values: Iterable[float], digits: int = 2) -> str:
    """``66.64 ± 0.91``, or ``-`` without any value."""
    values = list(values)
    if not values:
        return "-"
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{deviation}"


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping by dotted key."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, dict) and value else {name: value}
    return found


def differing(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The part of each flat mapping in which not all of them agree; a key that one lacks counts as None."""
    keys = sorted({key for setting in settings for key in setting})
    told_apart = [key for key in keys if len({short_digest(setting.get(key)) for setting in settings}) > 1]
    return [{key: setting.get(key) for key in told_apart} for setting in settings]
