"""Whether a difference between two settings is more than the seeds' spread."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

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
    """

    difference: float | None
    test: str = ""
    t: float | None = None
    p: float | None = None
    n: tuple[int, int] = (0, 0)
    why: str = ""

    def __str__(self) -> str:
        if self.difference is None:
            return self.why
        if self.p is None:
            return f"{self.difference:+.2f} ({self.why})"
        n = f"n = {self.n[0]}" if self.test.startswith("paired") else f"n = {self.n[0]} and {self.n[1]}"
        return f"{self.difference:+.2f} ({self.test}, t = {self.t:.2f}, p = {self.p:.3g}, {n} seeds)"


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
    difference, n = statistics.fmean(left) - statistics.fmean(right), (len(left), len(right))
    if min(n) < FEWEST:
        return Comparison(difference, n=n, why=f"too few seeds for a test: {n[0]} and {n[1]}")
    if _no_spread(left, right, paired=paired):
        return Comparison(difference, n=n, why="no spread over seeds to test against")
    if paired:
        t, p = stats.ttest_rel(left, right)
        return Comparison(difference, "paired t-test", float(t), float(p), n)
    t, p = stats.ttest_ind(left, right, equal_var=False)
    return Comparison(difference, "Welch's t-test", float(t), float(p), n)


def _no_spread(left: list[float], right: list[float], *, paired: bool) -> bool:
    sides = [[x - y for x, y in zip(left, right, strict=True)]] if paired else [left, right]
    return all(max(side) - min(side) < 1e-9 for side in sides)
