"""Any declaration, evaluated on rows."""

from __future__ import annotations

from typing import assert_never

from elmo_tasks.rows.collection import Rows
from elmo_tasks.tables.claims import evaluate_claims
from elmo_tasks.tables.collect import Choice, Selection
from elmo_tasks.tables.declare import Claims, Declaration, EpochsToPass, FineTuning, Table, Weights
from elmo_tasks.tables.epochs_to_pass import evaluate_epochs
from elmo_tasks.tables.finetuning import evaluate_finetuning
from elmo_tasks.tables.table import evaluate_table
from elmo_tasks.tables.texts import EvaluatedTable
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
