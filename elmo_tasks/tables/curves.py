"""The curves of a figure (``render/series.py``): their panels, and training curves."""

from __future__ import annotations

from elmo_tasks.render.series import Curve, Panel, Point, point
from elmo_tasks.rows import describe
from elmo_tasks.rows.settings import Setting
from elmo_tasks.tables.collect import Cell


def training_panels(title: str, cells: dict[str, Cell]) -> list[Panel]:
    """Mean dev score by epoch of some settings, each as far as every seed has come."""
    curves = []
    for label, cell in cells.items():
        curves += make_curves(label, [cell], mean_curve(cell.setting))
    return make_panel(title, curves)


def mean_curve(setting: Setting) -> list[Point]:
    """Mean dev score at the end of each epoch that all runs reached: patience ends some runs sooner than others."""
    runs = [{p.epoch: p.dev[row.metric.name] for p in row.curve} for row in setting.rows if row.curve]
    if not runs:
        return []
    return [point(epoch, [run[epoch] for run in runs]) for epoch in sorted(set.intersection(*map(set, runs)))]


def make_curves(label: str, cells: list[Cell], points: list[Point]) -> list[tuple[Cell, Curve]]:
    """The curve with a cell of its own, if it has points."""
    return [(cells[0], Curve(label, cells[0].wanted.config["elmo"]["placement"], points))] if points else []


def make_panel(title: str, curves: list[tuple[Cell, Curve]]) -> list[Panel]:
    """One panel, as a list: empty without curves."""
    if not curves:
        return []
    cell = curves[0][0]
    row = cell.setting.first
    return [Panel(title, row.metric.name, [curve for _, curve in curves], describe.shared_tags(row))]
