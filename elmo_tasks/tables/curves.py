"""The numbers of a figure (``render/series.py``), from evaluated tables and from training curves."""

from __future__ import annotations

from elmo_tasks.render.series import Curve, Pair, Panel, Point, gap, point
from elmo_tasks.rows import describe
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.measure import MeasuredTable


def make_panels(measured: MeasuredTable) -> list[Panel]:
    """A panel for each group of lines with a place on the axis, in it a curve for each column of scores."""
    panels = []
    for group in dict.fromkeys(line.curve for line in measured.lines if line.x is not None):
        curves = []
        for column in measured.table.scores():
            cells = {
                line.x: measured.cells[line.label, column.label]
                for line in measured.lines
                if line.curve == group and line.x is not None
            }
            with_rows = [cell for cell in cells.values() if cell.rows]
            curves += _curves(column.label, with_rows, _along(cells))
        panels += _panels(group, curves)
    return panels


def make_pairs(measured: MeasuredTable) -> list[Pair]:
    """Both ends of the first gain of each line whose two cells may be compared."""
    (gain, *_) = measured.table.gains()
    pairs = []
    for line in measured.lines:
        over, of = measured.cells[line.label, gain.over], measured.cells[line.label, gain.of]
        points = measured.comparison(line, gain.of, gain.over).difference
        if measured.gain(line, gain) is not None and points is not None:
            ends = point(0, over.values.values()), point(0, of.values.values())
            pairs.append(Pair(line.label, *ends, points, over.rising or of.rising))
    return pairs


def _along(cells: dict[float, Cell]) -> list[Point]:
    """Points from the first cell with rows to the last one, with a gap at each between them that has none."""
    found = [x for x, cell in cells.items() if cell.rows]
    if not found:
        return []
    between = [x for x in sorted(cells) if min(found) <= x <= max(found)]
    return [point(x, list(cells[x].values.values())) if cells[x].rows else gap(x) for x in between]


def training_panels(title: str, cells: dict[str, Cell]) -> list[Panel]:
    """Mean dev score by epoch of some settings, each as far as every seed has come."""
    curves = []
    for label, cell in cells.items():
        curves += _curves(label, [cell], mean_curve([*cell.rows.values()]))
    return _panels(title, curves)


def mean_curve(rows: list[Row]) -> list[Point]:
    """Mean dev score at the end of each epoch that all runs reached: patience ends some runs sooner than others."""
    runs = [{p.epoch: p.dev[row.metric.name] for p in row.curve} for row in rows if row.curve]
    if not runs:
        return []
    return [point(epoch, [run[epoch] for run in runs]) for epoch in sorted(set.intersection(*map(set, runs)))]


def _curves(label: str, cells: list[Cell], points: list[Point]) -> list[tuple[Cell, Curve]]:
    """The curve with a cell of its own, if it has points."""
    return [(cells[0], Curve(label, cells[0].setting.config["elmo"]["placement"], points))] if points else []


def _panels(title: str, curves: list[tuple[Cell, Curve]]) -> list[Panel]:
    if not curves:
        return []
    cell = curves[0][0]
    (row, *_) = cell.rows.values()
    return [Panel(title, row.metric.name, [curve for _, curve in curves], describe.shared_tags(row))]
