"""Whether a run had converged when it ended."""

from __future__ import annotations

from elmo_tasks.rows.fields import Ended

LAST_PART = 0.2
"""If the best epoch is within this last part of the budget, more training might have improved the score."""


def has_converged(
    ended: Ended, *, best_epoch: int, max_epochs: int | None, best_step: int = 0, max_steps: int | None = None
) -> bool:
    """Whether a run ended because its dev score no longer rose, and its best epoch was not near the budget's end.

    Args:
        ended: what ended the run.
        best_epoch: the epoch of the best dev score.
        max_epochs: the budget in epochs; None for no bound.
        best_step: how many updates had been made by the best dev score.
        max_steps: the budget in updates; None for no bound.
    """
    spent = [best_epoch / max_epochs] if max_epochs else []
    spent += [best_step / max_steps] if max_steps else []
    return ended == "patience" and all(part <= 1 - LAST_PART for part in spent)
