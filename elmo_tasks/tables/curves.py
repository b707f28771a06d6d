"""Curves of filled tables and of training: points with their spread over seeds, for a figure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.measure import Measured
from elmo_tasks.tables.rows import Row


@dataclass(frozen=True)
class Curve:
    """Points in order of x.

    Args:
        label: such as ``SNLI, baseline``.
        x: share of the training set in percent, lambda, or epoch.
        y: mean scores.
        sd: standard deviations over seeds; None where there is one seed.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    sd: tuple[float | None, ...]


class Point(NamedTuple):
    """A dev score during training."""

    epoch: int
    step: int
    score: float


def points_of(row: Row) -> list[Point]:
    """The dev scores of a run, in order; none if the row holds no usable ones."""
    try:
        return [Point(point["epoch"], point["step"], float(point["dev"][row["metric"]])) for point in row["curve"]]
    except (KeyError, TypeError, ValueError):
        return []


def curves_of(measured: Measured) -> list[Curve]:
    """A curve for each group of lines with a place on the axis, and each column of scores."""
    groups = dict.fromkeys(line.curve for line in measured.lines if line.x is not None)
    curves = []
    for group in groups:
        for column in measured.table.scores():
            points = [
                (line.x, cell.mean, cell.sd)
                for line in measured.lines
                if line.curve == group and line.x is not None
                if (cell := measured.cells[line.label, column.label]).mean is not None
            ]
            curves.append(_curve(f"{group}, {column.label}", points))
    return [curve for curve in curves if curve.x]


def training_curve(label: str, cell: Cell) -> Curve:
    """Mean dev score by epoch, as far as every seed has come."""
    runs = [points for row in cell.rows.values() if (points := points_of(row))]
    together = zip(*runs, strict=False)
    return _curve(label, [(at[0].epoch, *_spread([point.score for point in at])) for at in together])


def _spread(values: list[float]) -> tuple[float, float | None]:
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None


def _curve(label: str, points: Iterable[tuple[float, float, float | None]]) -> Curve:
    ordered = sorted(points, key=lambda point: point[0])
    return Curve(label, *(tuple(point[k] for point in ordered) for k in range(3)))  # type: ignore[arg-type]
