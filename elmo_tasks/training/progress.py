"""The progress that a run shows while it trains."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ProgressBar
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from elmo_tasks.progress import in_terminal, live, say
from elmo_tasks.training.callbacks import is_better
from elmo_tasks.training.module import TaskModule

_PAUSE = 0.5  # seconds between two looks at the loss, which wait for a GPU


@dataclass(frozen=True)
class Moment:
    """Where training is: updates so far and in all (None: not known), epoch and epochs, and the last loss."""

    step: int
    total: int | None
    epoch: int
    n_epochs: int | None
    loss: float | None


class Display:
    """Epoch, loss, dev score, best so far and time left: one live line in a terminal, else a line for each dev score.

    The time left is that of all epochs; a run that stops early ends sooner.

    Args:
        title: what is trained, such as ``ner input``; nothing is shown if it is empty.
        tokens_per_batch: shows the speed in tokens a second; None where batches differ.
    """

    def __init__(self, title: str, tokens_per_batch: int | None = None) -> None:
        self.title, self.tokens_per_batch = title, tokens_per_batch
        self.dev: str = ""
        self._in_terminal = False
        self._live = live(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
        )
        self._task = self._live.add_task(title, total=None, status="")

    def start(self, step: int, total: int | None) -> None:
        """Begin after so many updates."""
        self._start, self._first_step, self._looked = time.monotonic(), step, 0.0
        self._in_terminal = in_terminal() and bool(self.title)
        if self._in_terminal:
            self._live.update(self._task, total=total, completed=step)
            self._live.start()

    def updated(self, moment: Callable[[], Moment]) -> None:
        """Redraw the live line if it is time to; only then is ``moment`` asked, which may wait for a GPU."""
        if not self._in_terminal or time.monotonic() - self._looked < _PAUSE:
            return
        self._looked = time.monotonic()
        now = moment()
        status = "  ".join(filter(None, (_epoch(now), _loss(now), self._speed(now), self.dev)))
        self._live.update(self._task, total=now.total, completed=now.step, status=status)

    def scored(self, now: Moment, score: str, best: str, best_epoch: int) -> None:
        """Note a dev score, such as ``f1 90.12``; without a terminal it is a line, except that before training."""
        self.dev = f"dev {score}  best {best} (epoch {best_epoch})"
        if now.step and self.title and not self._in_terminal:
            parts = (_epoch(now), _loss(now), self.dev, self._speed(now), self._left(now))
            say(f"{self.title}: {'  '.join(filter(None, parts))}")

    def stop(self) -> None:
        """Remove the live line."""
        if self._in_terminal:
            self._live.stop()

    def _speed(self, now: Moment) -> str:
        steps, seconds = now.step - self._first_step, time.monotonic() - self._start
        return "" if self.tokens_per_batch is None else f"{self.tokens_per_batch * steps / seconds:,.0f} tokens/s"

    def _left(self, now: Moment) -> str:
        steps = now.step - self._first_step
        if not steps or now.total is None:
            return ""
        seconds = (time.monotonic() - self._start) / steps * max(0, now.total - now.step)
        return f"at most {seconds / 60:.0f} min left" if seconds >= 90 else f"at most {seconds:.0f} s left"


def _epoch(now: Moment) -> str:
    return f"epoch {now.epoch} of {now.n_epochs}"


def _loss(now: Moment) -> str:
    return "" if now.loss is None else f"loss {now.loss:.3f}"


class ShowProgress(ProgressBar):
    """Shows a training by Lightning on a :class:`Display`.

    Args:
        title: what is trained, such as ``ner input``.
        max_steps: updates after which the run ends; -1 for no bound.
    """

    def __init__(self, title: str, *, max_steps: int = -1) -> None:
        super().__init__()
        self.display, self.max_steps = Display(title), max_steps
        self.best: float | None = None
        self.best_epoch = 0

    def disable(self) -> None:
        """Lightning calls this in all processes but the first."""
        self.display.title = ""

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "best_epoch": self.best_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.best_epoch = state_dict["best"], state_dict["best_epoch"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.display.start(trainer.global_step, self._total(trainer))

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.display.updated(lambda: self._moment(trainer))

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, TaskModule)
        metric, epoch = pl_module.metric, trainer.current_epoch + 1
        value = float(trainer.callback_metrics[f"dev/{metric.name}"])
        if is_better(metric, value, self.best):
            self.best, self.best_epoch = value, epoch
        self.display.scored(self._moment(trainer), f"{metric.name} {value:.2f}", f"{self.best:.2f}", self.best_epoch)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.display.stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self.display.stop()

    def _moment(self, trainer: pl.Trainer) -> Moment:
        loss = trainer.callback_metrics.get("train/loss")
        return Moment(
            trainer.global_step,
            self._total(trainer),
            trainer.current_epoch + 1,
            trainer.max_epochs,
            None if loss is None else float(loss),
        )

    def _total(self, trainer: pl.Trainer) -> int | None:
        """Updates of the whole training."""
        bounds = [] if self.max_steps < 0 else [self.max_steps]
        if trainer.max_epochs is not None and trainer.num_training_batches < math.inf:
            bounds.append(int(trainer.num_training_batches) * trainer.max_epochs)
        return min(bounds, default=None)


def silence_lightning() -> None:
    """Silence the banners and hints of Lightning; the run's own table says what matters."""
    for name in ("pytorch_lightning", "lightning.pytorch", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    for part in ("utilities.rank_zero", "utilities.distributed"):
        logging.getLogger(f"pytorch_lightning.{part}").setLevel(logging.ERROR)
        logging.getLogger(f"lightning_fabric.{part}").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="pytorch_lightning|lightning_fabric")
    warnings.filterwarnings("ignore", message=".*isinstance\\(treespec.*")
