"""Numbers of figures, out of filled tables and of training; ``report/series.py`` has the panels, curves and points."""

from __future__ import annotations

from typing import NamedTuple

from elmo_tasks.report.series import Curve, Panel, Point, gap, point
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.measure import Measured
from elmo_tasks.tables.rows import Row


class Scored(NamedTuple):
    """A dev score during training."""

    epoch: int
    step: int
    score: float


def scores_of(row: Row) -> list[Scored]:
    """The dev scores of a run, in order; an ensemble has none."""
    return [Scored(at["epoch"], at["step"], float(at["dev"][row["metric"]])) for at in row.get("curve", ())]


def panels_of(measured: Measured) -> list[Panel]:
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
        runs = [scores for row in cell.rows.values() if (scores := scores_of(row))]
        together = zip(*runs, strict=False)
        points = [point(at[0].epoch, [scored.score for scored in at]) for at in together]
        curves += _curves(label, [cell], points)
    return _panels(title, curves)


def _curves(label: str, cells: list[Cell], points: list[Point]) -> list[tuple[str, Curve]]:
    """The curve with its metric, if it has points."""
    if not points:
        return []
    (row, *_) = cells[0].rows.values()
    return [(row["metric"], Curve(label, cells[0].setting.config["elmo"]["placement"], points))]


def _panels(title: str, curves: list[tuple[str, Curve]]) -> list[Panel]:
    return [Panel(title, curves[0][0], [curve for _, curve in curves])] if curves else []
