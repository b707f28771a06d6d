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
    """A task's scores without and with ELMo; ``rising`` says that one of them has not converged."""

    name: str
    baseline: Point
    elmo: Point
    rising: bool = False


def make_pair(name: str, baseline: Iterable[float], elmo: Iterable[float], *, rising: bool) -> Pair:
    """A pair from the seeds' scores without and with ELMo."""
    return Pair(name, point(0, [*baseline]), point(0, [*elmo]), rising)


def point(x: float, values: list[float]) -> Point:
    """A point from the seeds' values."""
    return Point(x, statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


def gap(x: float) -> Point:
    """A missing number, where the line of a curve is interrupted."""
    return Point(x, math.nan, math.nan, 0)


def drawable(panels: Iterable[Panel]) -> list[Panel]:
    """The panels with a curve of at least two points; a single point is better shown in a table."""
    return [panel for panel in panels if any(sum(p.n > 0 for p in c.points) > 1 for c in panel.curves)]
