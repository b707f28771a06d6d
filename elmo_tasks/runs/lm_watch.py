"""What a run shows and logs of the training of a biLM."""

from __future__ import annotations

from typing import Any

from pytorch_lightning.loggers import Logger

from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.pretrain.train import LOGGED, Training
from elmo_tasks.training.checkpoint import curves_from_bytes, curves_to_bytes
from elmo_tasks.training.curves import Resumable
from elmo_tasks.training.progress import Display, Moment


class ShowAndLog:
    """Shows a training on a display, and logs it with one of Lightning's loggers.

    Args:
        display: has an empty title if nothing is to be shown.
        logger: False in all processes but the first, and without curves.
        n_epochs: budget of epochs.
        n_updates: budget of updates.
    """

    def __init__(self, display: Display, logger: Logger | bool, n_epochs: int, n_updates: int) -> None:
        self.display, self.logger, self.n_epochs, self.n_updates = display, logger, n_epochs, n_updates

    def began(self, training: Training) -> None:
        self.display.start(training.progress.updates, self.n_updates)

    def updated(self, training: Training) -> None:
        self.display.updated(lambda: self._moment(training, training.epoch))
        if training.progress.updates % LOGGED == 0:
            self._log(training, {"train/loss": training.loss})

    def scored(self, training: Training) -> None:
        progress, metric = training.progress, Perplexity.name
        point = progress.curve[-1]
        scores = {f"dev/{name}": value for name, value in point["dev"].items()}
        self._log(training, {**scores, "train/lr": training.rates[0]})
        score = f"{metric} {point['dev'][metric]:.2f}"
        self.display.scored(self._moment(training, point["epoch"]), score, f"{progress.best:.2f}", progress.best_epoch)

    def _moment(self, training: Training, epoch: int) -> Moment:
        updates = training.progress.updates
        return Moment(updates, self.n_updates, epoch, self.n_epochs, training.loss if updates else None)

    def _log(self, training: Training, values: dict[str, float]) -> None:
        if isinstance(self.logger, Logger):  # steps and epochs from 0, as Lightning counts them
            step = max(0, training.progress.updates - 1)
            self.logger.log_metrics({**values, "epoch": max(0, training.epoch - 1)}, step=step)

    def ended(self) -> None:
        self.display.stop()

    def state(self) -> Any:
        return curves_to_bytes(self.logger.lines() if isinstance(self.logger, Resumable) else [])

    def resume(self, state: Any) -> None:
        if isinstance(self.logger, Resumable):
            self.logger.resume(curves_from_bytes(state))
