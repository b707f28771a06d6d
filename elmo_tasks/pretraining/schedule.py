"""The learning rate: up from zero over the first updates, then down to zero at the end of the budget."""

from __future__ import annotations


def learning_rate(peak: float, warm_up: int, update: int, progress: float) -> float:
    """The rate of an update.

    Args:
        peak: the highest rate.
        warm_up: updates over which the rate rises.
        update: its number, from 0.
        progress: the share of the budget that is spent, from 0 to 1.
    """
    left = 1 - min(1.0, max(0.0, progress))
    return peak * left * min(1.0, (update + 1) / (warm_up + 1))
