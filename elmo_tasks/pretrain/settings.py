"""How a biLM is trained, besides its model and its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from elmo_tasks.training.tree import RESTART


@dataclass(frozen=True)
class Settings:
    """One training; at least one of its three budgets is given.

    Attributes:
        seed: of the candidates.
        epochs: budget of passes over the text, besides those of ``softmax_epochs``.
        max_steps: budget of updates.
        minutes: budget of training time, over all calls.
        softmax_epochs: first epochs, in which the biLM stays as it is.
        patience: epochs without a better score after which training ends.
        schedule: of the learning rate: ``linear`` lowers it to zero over the budget, ``halve`` halves it after each
            epoch that ends without a better score, ``decay`` lowers it by a thousandth every hundred updates.
        warm_up: updates over which the learning rate rises first.
        grad_norm: bound of the gradient's norm, of the loss times the steps of a window as in bilm-tf.
        average: the share of the average of the weights that an update keeps at most; None for no average. The average
            is what is scored and kept.
        bfloat16: whether products are in bfloat16.
        score_every: updates of an epoch between two scores, besides the one at its end; None for that one only, 0 for
            one at the end of training only.
        heldout_windows: windows of held-out text that are scored during training; None for all.
        score_first: whether the initial weights are scored.
        keep_best: whether the weights with the best score are kept in a file.
        save_every: seconds between two saved states, besides those after each score.
        remedy: what can be done if training diverges.
        restart: what can be done about a state that cannot be used.
    """

    seed: int
    epochs: float | None = None
    max_steps: int | None = None
    minutes: float | None = None
    softmax_epochs: int = 0
    patience: int | None = None
    schedule: Literal["linear", "halve", "decay"] | None = None
    warm_up: int = 0
    grad_norm: float | None = None
    average: float | None = None
    bfloat16: bool = False
    score_every: int | None = None
    heldout_windows: int | None = None
    score_first: bool = False
    keep_best: bool = False
    save_every: float = 600.0
    remedy: str = "lower task.optimizer.lr or task.training.grad_norm"
    restart: str = RESTART

    def spent(self, updates: int, seconds: float, updates_per_epoch: int) -> float:
        """The share of the budget that is spent."""
        epochs = None if self.epochs is None else (self.softmax_epochs + self.epochs) * updates_per_epoch
        seconds_in_all = None if self.minutes is None else 60 * self.minutes
        budgets = ((updates, epochs), (updates, self.max_steps), (seconds, seconds_in_all))
        return max(done / budget for done, budget in budgets if budget is not None)

    def rate_factor(self, update: int, spent: float, halved: int) -> float:
        """What the learning rate is multiplied by.

        Args:
            update: its number, from 0.
            spent: the share of the budget that is spent.
            halved: how many epochs have ended without a better score.
        """
        rise = min(1.0, (update + 1) / (self.warm_up + 1))
        if self.schedule == "linear":
            return rise * (1 - min(1.0, max(0.0, spent)))
        if self.schedule == "decay":
            return rise * 0.999 ** (update // 100)
        return rise * (0.5**halved if self.schedule == "halve" else 1.0)
