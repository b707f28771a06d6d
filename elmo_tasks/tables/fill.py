"""Any declaration, filled from rows."""

from __future__ import annotations

from typing import assert_never

from elmo_tasks.render.sections import Section
from elmo_tasks.rows.collection import Rows
from elmo_tasks.tables.claims import fill_claims
from elmo_tasks.tables.curves import make_pairs, make_panels
from elmo_tasks.tables.declare import Declaration, FineTuning, Race, Table, Weights
from elmo_tasks.tables.declare_claims import Claims
from elmo_tasks.tables.finetuning import fill_finetuning
from elmo_tasks.tables.measure import Choice, FilledTable, Selection, measure
from elmo_tasks.tables.race import fill_race
from elmo_tasks.tables.texts import make_table
from elmo_tasks.tables.weights import fill_weights


def fill(declared: Declaration, rows: Rows, choice: Choice) -> FilledTable:
    """Find the cells of a declaration and put them into its form.

    Raises:
        UserError: if it names a task, key, column or value of the paper that is not there.
    """
    selection = Selection(rows, choice)
    match declared:
        case Table():
            return fill_table(declared, selection)
        case Race():
            return fill_race(declared, selection)
        case Weights():
            return fill_weights(declared, selection)
        case FineTuning():
            return fill_finetuning(declared, selection)
        case Claims():
            return fill_claims(declared, selection)
    assert_never(declared)


def fill_table(table: Table, selection: Selection) -> FilledTable:
    """Lines by columns of scores, with their curves or chart if there are any."""
    measured = measure(table, selection)
    panels = make_panels(measured)
    pairs = make_pairs(measured) if table.chart else []
    section = Section(make_table(measured, selection), tuple(panels), table.axis, pairs=tuple(pairs))
    return FilledTable([*measured.cells.values()], section)
