"""Any declaration, filled from rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from elmo_tasks.report.grid import Grid
from elmo_tasks.report.series import Mix, Panel
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.claims import fill_claims
from elmo_tasks.tables.curves import panels_of
from elmo_tasks.tables.declare import Claims, Declaration, FineTuning, Race, Table, Weights
from elmo_tasks.tables.finetuning import fill_finetuning
from elmo_tasks.tables.measure import Choice, measure
from elmo_tasks.tables.race import fill_race
from elmo_tasks.tables.render import chosen_note, grid_of
from elmo_tasks.tables.rows import Rows
from elmo_tasks.tables.weights import fill_weights


@dataclass(frozen=True)
class Filled:
    """What the rows say of a declaration.

    Args:
        cells: every setting that it asks for.
        grid: its table.
        panels: of a figure of curves.
        axis: what their x is (see ``report/figures.py``).
        mixes: of a figure of layer weights.
    """

    cells: list[Cell]
    grid: Grid
    panels: tuple[Panel, ...] = ()
    axis: str = ""
    mixes: tuple[Mix, ...] = ()


def fill(declared: Declaration, rows: Rows, choice: Choice) -> Filled:
    """Find the cells of a declaration and put them into its form.

    Raises:
        UserError: if it names a task, key, column or value of the paper that is not there.
    """
    filled = _fill(declared, rows, choice)
    grid = filled.grid
    return replace(filled, grid=replace(grid, notes=[*grid.notes[:1], *chosen_note(choice), *grid.notes[1:]]))


def _fill(declared: Declaration, rows: Rows, choice: Choice) -> Filled:
    match declared:
        case Table():
            measured = measure(declared, rows, choice)
            return Filled(
                list(measured.cells.values()), grid_of(measured, rows), tuple(panels_of(measured)), declared.axis
            )
        case Race():
            cells, grid, panels = fill_race(declared, rows, choice)
            return Filled(cells, grid, tuple(panels), "epoch")
        case Weights():
            cells, grid, mixes = fill_weights(declared, rows, choice)
            return Filled(cells, grid, mixes=tuple(mixes))
        case FineTuning():
            return Filled(*fill_finetuning(declared, rows, choice))
        case Claims():
            return Filled(*fill_claims(declared, rows, choice))
    assert_never(declared)
