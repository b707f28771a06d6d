"""Any declaration, filled from rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from elmo_tasks.report.grid import Grid
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.claims import fill_claims
from elmo_tasks.tables.curves import Curve, curves_of
from elmo_tasks.tables.declare import Claim, Claims, Declaration, Race, Table, Weights
from elmo_tasks.tables.measure import Choice, measure
from elmo_tasks.tables.race import fill_race
from elmo_tasks.tables.render import grid_of
from elmo_tasks.tables.rows import Rows
from elmo_tasks.tables.weights import Mix, fill_weights


@dataclass(frozen=True)
class Filled:
    """What the rows say of a declaration.

    Args:
        cells: every setting that it asks for.
        grid: its table.
        curves: of a figure.
        mixes: of a figure of layer weights.
        verdicts: on claims.
    """

    cells: list[Cell]
    grid: Grid
    curves: tuple[Curve, ...] = ()
    mixes: tuple[Mix, ...] = ()
    verdicts: tuple[tuple[Claim, str], ...] = ()


def fill(declared: Declaration, rows: Rows, choice: Choice) -> Filled:
    """Find the cells of a declaration and put them into its form.

    Raises:
        UserError: if it names a task, key, column or value of the paper that is not there.
    """
    match declared:
        case Table():
            measured = measure(declared, rows, choice)
            return Filled(list(measured.cells.values()), grid_of(measured, rows), curves=tuple(curves_of(measured)))
        case Race():
            cells, grid, curves = fill_race(declared, rows, choice)
            return Filled(cells, grid, curves=tuple(curves))
        case Weights():
            cells, grid, mixes = fill_weights(declared, rows, choice)
            return Filled(cells, grid, mixes=tuple(mixes))
        case Claims():
            cells, grid, verdicts = fill_claims(declared, rows, choice)
            return Filled(cells, grid, verdicts=tuple(verdicts))
    assert_never(declared)
