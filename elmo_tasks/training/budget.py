"""How long a run trains at most, and whether that lets it end by patience."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Budget:
    """How long a run trains at most, and how much of the dev data it scores during training.

    Attributes:
        max_epochs: passes over the training data.
        max_steps: updates; None for no bound.
        dev_batches: share (float) or number (int) of dev batches that are scored during training.
    """

    max_epochs: int
    max_steps: int | None
    dev_batches: float = 1.0


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


def epochs_stand_alone(config: dict[str, Any]) -> bool:
    """Whether an epoch of training is the same whatever ``trainer.max_epochs`` is.

    Not so under the linear schedule. A run with a bound on updates does not count: this bound is its budget.
    """
    return bool(config["task"]["training"]["schedule"] != "linear" and config["trainer"]["max_steps"] < 0)
