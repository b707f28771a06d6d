"""The numbers of the figures: means and standard deviations over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Point:
    """Mean and sample standard deviation (0 for a single seed) of n seeds at x; both NaN without any (:func:`gap`)."""

    x: float
    mean: float
    sd: float
    n: int


@dataclass(frozen=True)
class Curve:
    """One line of a panel; ``placement`` is ``none`` for the baseline."""

    name: str
    placement: str
    points: list[Point]


@dataclass(frozen=True)
class Panel:
    """One pair of axes; ``tags`` are what a page's filters choose by."""

    title: str
    metric: str
    curves: list[Curve]
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LayerWeights:
    """What a mix learned: means over n seeds of s by layer, and of gamma."""

    name: str
    place: str
    s: list[float]
    gamma: float
    n: int


@dataclass(frozen=True)
class Pair:
    """A task's scores without and with ELMo.

    Args:
        name: of the task.
        baseline: mean over seeds, without ELMo.
        elmo: the same with it.
        gain: of the seeds that were compared, which may be fewer than those of the means.
        rising: whether one of them has not converged.
        tags: what a page's filters choose by.
    """

    name: str
    baseline: Point
    elmo: Point
    gain: float
    rising: bool = False
    tags: dict[str, str] = field(default_factory=dict)


def point(x: float, values: Iterable[float]) -> Point:
    """A point from the seeds' values."""
    values = list(values)
    return Point(x, statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


def gap(x: float) -> Point:
    """A missing number, where the line of a curve is interrupted."""
    return Point(x, math.nan, math.nan, 0)


def drawable(panels: Iterable[Panel]) -> list[Panel]:
    """The panels with a curve of at least two points; a single point is better shown in a table."""
    return [panel for panel in panels if any(sum(p.n > 0 for p in c.points) > 1 for c in panel.curves)]
