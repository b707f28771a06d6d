"""Any declaration, evaluated on rows."""

from __future__ import annotations

from typing import assert_never

from elmo_tasks.render.sections import Section
from elmo_tasks.rows.collection import Rows
from elmo_tasks.tables.claims import evaluate_claims
from elmo_tasks.tables.curves import make_pairs, make_panels
from elmo_tasks.tables.declare import Declaration, EpochsToPass, FineTuning, Table, Weights
from elmo_tasks.tables.declare_claims import Claims
from elmo_tasks.tables.epochs_to_pass import evaluate_epochs
from elmo_tasks.tables.finetuning import evaluate_finetuning
from elmo_tasks.tables.measure import Choice, EvaluatedTable, Selection, measure
from elmo_tasks.tables.texts import make_table
from elmo_tasks.tables.weights import evaluate_weights


def evaluate(declared: Declaration, rows: Rows, choice: Choice) -> EvaluatedTable:
    """Find the cells of a declaration and put them into its form.

    Raises:
        UserError: if it names a task, key, column or value of the paper that is not there.
    """
    selection = Selection(rows, choice)
    match declared:
        case Table():
            return evaluate_table(declared, selection)
        case EpochsToPass():
            return evaluate_epochs(declared, selection)
        case Weights():
            return evaluate_weights(declared, selection)
        case FineTuning():
            return evaluate_finetuning(declared, selection)
        case Claims():
            return evaluate_claims(declared, selection)
    assert_never(declared)


def evaluate_table(table: Table, selection: Selection) -> EvaluatedTable:
    """Lines by columns of scores, with their curves or chart if there are any."""
    measured = measure(table, selection)
    panels = make_panels(measured)
    pairs = make_pairs(measured) if table.chart else []
    section = Section(make_table(measured, selection), tuple(panels), table.axis, pairs=tuple(pairs))
    return EvaluatedTable([*measured.cells.values()], section)
