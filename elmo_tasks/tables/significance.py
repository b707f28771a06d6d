"""Whether a difference between two settings is more than the seeds' spread."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace

from scipy import stats

FEWEST = 3
"""Seeds of a setting below which nothing is tested."""


@dataclass(frozen=True)
class Comparison:
    """A difference of means and its two-sided test.

    Args:
        difference: of means, in points; None if one side has no rows.
        test: its name; empty if there was none.
        t: the statistic.
        p: two-sided.
        n: seeds on either side (the same ones where the test is paired).
        why: no test, if there was none.
        base: mean of the second side, on the seeds that were compared.
        partial: whether a side has seeds that were not, since the other one lacks them.
    """

    difference: float | None
    test: str = ""
    t: float | None = None
    p: float | None = None
    n: tuple[int, int] = (0, 0)
    why: str = ""
    base: float | None = None
    partial: bool = False

    @property
    def seeds(self) -> str:
        """On which seeds the difference was taken, to stand behind it; nothing if on all."""
        return f" on the {self.n[0]} shared seeds" if self.partial else ""

    def __str__(self) -> str:
        if self.difference is None:
            return self.why
        if self.p is None:
            return f"{self.difference:+.2f}{self.seeds} ({self.why})"
        n = f"n = {self.n[0]}" if self.test.startswith("paired") else f"n = {self.n[0]} and {self.n[1]}"
        return f"{self.difference:+.2f}{self.seeds} ({self.test}, t = {self.t:.2f}, p = {self.p:.3g}, {n} seeds)"


def compare(a: Mapping[int, float], b: Mapping[int, float]) -> Comparison:
    """The mean of ``a`` minus that of ``b``, both by seed.

    A seed gives both settings the same initial weights and order of batches, so seeds that both have are compared in
    pairs (a t-test of their differences). With fewer than three of those it is Welch's test on all seeds.
    """
    if not a or not b:
        return Comparison(None, why="missing")
    shared = sorted(a.keys() & b.keys())
    paired = len(shared) >= FEWEST
    left, right = ([a[s] for s in shared], [b[s] for s in shared]) if paired else (list(a.values()), list(b.values()))
    base, n = statistics.fmean(right), (len(left), len(right))
    found = Comparison(statistics.fmean(left) - base, n=n, base=base, partial=n != (len(a), len(b)))
    if min(n) < FEWEST:
        return replace(found, why=f"too few seeds for a test: {n[0]} and {n[1]}")
    if _no_spread(left, right, paired=paired):
        return replace(found, why="no spread over seeds to test against")
    t, p = stats.ttest_rel(left, right) if paired else stats.ttest_ind(left, right, equal_var=False)
    return replace(found, test="paired t-test" if paired else "Welch's t-test", t=float(t), p=float(p))


def _no_spread(left: list[float], right: list[float], *, paired: bool) -> bool:
    sides = [[x - y for x, y in zip(left, right, strict=True)]] if paired else [left, right]
    return all(max(side) - min(side) < 1e-9 for side in sides)
