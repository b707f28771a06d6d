"""Whether a run's budget lets it end by patience."""

from __future__ import annotations

from typing import Any


def budget_note(trainer: dict[str, Any]) -> str:
    """A sentence for a budget that ends a run before patience can; empty for any other budget.

    Args:
        trainer: the section of a checked configuration.
    """
    epochs, patience = trainer["max_epochs"], trainer["patience"]
    if epochs is None or patience is None or epochs > patience:
        return ""
    return (
        f"trainer.max_epochs={epochs} is not above trainer.patience={patience}: the run ends by its budget, not by "
        "patience, and its row will say that it had not converged"
    )
