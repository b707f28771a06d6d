"""The learning rate: up from zero over the first updates, then down to zero at the end of the budget."""

from __future__ import annotations

import math

SCHEDULES = ("linear", "cosine")


def learning_rate(schedule: str, peak: float, warm_up: int, update: int, progress: float) -> float:
    """The rate of an update.

    Args:
        schedule: ``linear`` or ``cosine``.
        peak: the highest rate.
        warm_up: updates over which the rate rises.
        update: its number, from 0.
        progress: the share of the budget that is spent, from 0 to 1.
    """
    left = 1 - min(1.0, max(0.0, progress))
    falling = left if schedule == "linear" else 0.5 - 0.5 * math.cos(math.pi * left)
    return peak * falling * min(1.0, (update + 1) / (warm_up + 1))
