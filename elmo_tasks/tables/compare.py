"""Compare two settings over seeds: whether they may be compared, their difference, and its significance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtr, stdtrit  # scipy.stats takes a second to import

from elmo_tasks.errors import counted
from elmo_tasks.tables.collect import Cell

FEWEST = 3
"""Minimum number of seeds of a setting for a test."""

CONFIDENCE = 0.95
"""Confidence level of the interval beside each difference."""


@dataclass(frozen=True)
class Comparison:
    """A difference of means and its two-sided test.

    Args:
        difference: of means, in points; None if one side has no rows.
        test: its name; empty if there was none.
        t: the statistic.
        p: two-sided.
        adjusted: ``p`` after the correction for the number of comparisons (see :func:`corrected`).
        interval: of the difference, with 95 % confidence.
        n: seeds on either side (the same ones where the test is paired).
        why: the reason why there was no test.
        base: mean of the second side, on the seeds that were compared.
        partial: whether a side has seeds that were not compared, because the other one lacks them.
    """

    difference: float | None
    test: str = ""
    t: float | None = None
    p: float | None = None
    adjusted: float | None = None
    interval: tuple[float, float] | None = None
    n: tuple[int, int] = (0, 0)
    why: str = ""
    base: float | None = None
    partial: bool = False

    @property
    def seeds(self) -> str:
        """On which seeds the difference was taken; nothing if on all."""
        return f" on the {counted(self.n[0], 'shared seed')}" if self.partial else ""

    def __str__(self) -> str:
        if self.difference is None:
            return self.why
        if self.p is None or self.interval is None:
            return f"{self.difference:+.2f}{self.seeds} ({self.why})"
        n = f"n = {self.n[0]}" if self.test.startswith("paired") else f"n = {self.n[0]} and {self.n[1]}"
        low, high = self.interval
        p = f"p = {self.p:.3g}" + ("" if self.adjusted is None else f", Holm {self.adjusted:.3g}")
        effect = f"{self.difference:+.2f}, 95 % CI {low:+.2f} to {high:+.2f}{self.seeds}"
        return f"{effect} ({self.test}, t = {self.t:.2f}, {p}, {n} seeds)"


def compare_cells(of: Cell, over: Cell, *, other_bilm: bool = False) -> Comparison:
    """The test of one cell's scores against another's; see :func:`incomparable`."""
    why = incomparable(of, over, other_bilm=other_bilm)
    return Comparison(None, why=why) if why else compare(of.values, over.values)


def incomparable(*cells: Cell, other_bilm: bool = False) -> str:
    """Why the rows of some cells must not be compared; empty if they may.

    Args:
        cells: those without rows, and those without a biLM, do not count.
        other_bilm: whether the biLM, or the precision it is read with, is what is compared.
    """
    with_rows = [(cell, cell.setting.first) for cell in cells if cell.rows]
    if len({row.data_digests(cell.split) for cell, row in with_rows}) > 1:
        return "not compared: the rows are of different data files"
    words = {(cell.wanted.config["words"]["path"], row.inputs.word_vectors) for cell, row in with_rows}
    words = {(path, digest) for path, digest in words if digest}  # another ``words.path`` is another setting
    if len(words) > len({path for path, _ in words}):
        return "not compared: the rows are of different word vectors"
    if not other_bilm and len({row.inputs.bilm for _, row in with_rows} - {None}) > 1:
        return "not compared: the rows are of different biLM weights"
    return ""


def compare(a: Mapping[int, float], b: Mapping[int, float]) -> Comparison:
    """The mean of ``a`` minus that of ``b``, both by seed.

    A seed gives both settings the same order of batches, and with ``data.fraction`` the same items, so seeds that both
    have are compared in pairs (a t-test of their differences). With fewer than three of those it is Welch's test on all
    seeds; and where that lacks seeds too, the difference is that of the seeds that both have, if any.
    """
    if not a or not b:
        return Comparison(None, why="missing")
    shared = sorted(a.keys() & b.keys())
    paired = len(shared) >= FEWEST
    on_shared = paired or (bool(shared) and min(len(a), len(b)) < FEWEST)
    left, right = ([a[s] for s in shared], [b[s] for s in shared]) if on_shared else ([*a.values()], [*b.values()])
    base, n = statistics.fmean(right), (len(left), len(right))
    found = Comparison(statistics.fmean(left) - base, n=n, base=base, partial=n != (len(a), len(b)))
    if min(n) < FEWEST:
        return replace(found, why=f"too few seeds for a test: {len(a)} and {len(b)}")
    sides = [[x - y for x, y in zip(left, right, strict=True)]] if paired else [left, right]
    if all(max(side) - min(side) < 1e-9 for side in sides):
        return replace(found, why="no spread over seeds to test against")
    difference, (error, freedom) = statistics.fmean(left) - base, _error(sides)
    t, margin = difference / error, error * float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    p = 2 * float(stdtr(freedom, -abs(t)))
    test = "paired t-test" if paired else "Welch's t-test"
    return replace(found, test=test, t=t, p=p, adjusted=p, interval=(difference - margin, difference + margin))


def _error(sides: list[list[float]]) -> tuple[float, float]:
    """Standard error of the mean of one side, or of the difference of two, and its degrees of freedom (Welch, 1947)."""
    squares = [statistics.variance(side) / len(side) for side in sides]
    weights = sum(square**2 / (len(side) - 1) for square, side in zip(squares, sides, strict=True))
    return math.sqrt(sum(squares)), sum(squares) ** 2 / weights


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons of one table, their p adjusted for the number of all of them (Holm, 1979).

    The smallest of m values is multiplied by m, the next one by m - 1, and so on; none may fall below an earlier one.
    A comparison without a p, such as one whose runs are missing, counts as one with p = 1. So a difference that is
    significant now remains so when other cells of the table have been run.
    """
    tested = sorted((one.p, i) for i, one in enumerate(comparisons) if one.p is not None)
    found, largest = list(comparisons), 0.0
    for rank, (p, i) in enumerate(tested):
        largest = max(largest, min(1.0, p * (len(comparisons) - rank)))
        found[i] = replace(found[i], adjusted=largest)
    return found
