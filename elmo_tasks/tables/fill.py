"""Any declaration, filled from rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from elmo_tasks.render.sections import Section
from elmo_tasks.rows.collection import Rows
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.claims import fill_claims
from elmo_tasks.tables.curves import pairs_of, panels_of
from elmo_tasks.tables.declare import Declaration, Everything, FineTuning, Race, Table, Weights
from elmo_tasks.tables.declare_claims import Claims
from elmo_tasks.tables.everything import fill_everything
from elmo_tasks.tables.finetuning import fill_finetuning
from elmo_tasks.tables.measure import Choice, measure
from elmo_tasks.tables.race import fill_race
from elmo_tasks.tables.texts import chosen_note, grid_of
from elmo_tasks.tables.weights import fill_weights


@dataclass(frozen=True)
class FilledTable:
    """What the rows say of a declaration.

    Args:
        cells: every setting that it asks for.
        section: its table and the numbers of its figure.
    """

    cells: list[Cell]
    section: Section


def fill(declared: Declaration, rows: Rows, choice: Choice) -> FilledTable:
    """Find the cells of a declaration and put them into its form.

    Raises:
        UserError: if it names a task, key, column or value of the paper that is not there.
    """
    cells, section = _fill(declared, rows, choice)
    notes = section.grid.notes
    return FilledTable(
        cells, replace(section, grid=replace(section.grid, notes=[*notes[:1], *chosen_note(choice), *notes[1:]]))
    )


def _fill(declared: Declaration, rows: Rows, choice: Choice) -> tuple[list[Cell], Section]:
    match declared:
        case Table():
            measured = measure(declared, rows, choice)
            pairs = pairs_of(measured) if declared.chart else ()
            grid, panels = grid_of(measured, rows), panels_of(measured)
            return [*measured.cells.values()], Section(grid, tuple(panels), declared.axis, pairs=tuple(pairs))
        case Race():
            return fill_race(declared, rows, choice)
        case Weights():
            return fill_weights(declared, rows, choice)
        case FineTuning():
            return fill_finetuning(declared, rows, choice)
        case Claims():
            return fill_claims(declared, rows, choice)
        case Everything():
            return [], fill_everything(declared, rows)
    assert_never(declared)
