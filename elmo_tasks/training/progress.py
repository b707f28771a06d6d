"""The progress that a run shows while it trains."""

from __future__ import annotations

import logging
import math
import time
import warnings
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ProgressBar
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

from elmo_tasks.progress import in_terminal, live, say
from elmo_tasks.training.callbacks import is_better
from elmo_tasks.training.module import TaskModule

_PAUSE = 0.5  # seconds between two looks at the loss, which wait for a GPU


class ShowProgress(ProgressBar):
    """Epoch, loss, dev score, best so far and time left: one live line in a terminal, else a line for each dev score.

    The time left is that of all epochs; a run that stops early ends sooner.

    Args:
        title: what is trained, such as ``ner input``.
        max_steps: updates after which the run ends; -1 for no bound.
        tokens_per_batch: shows the speed in tokens a second; None where batches differ.
    """

    def __init__(self, title: str, *, max_steps: int = -1, tokens_per_batch: int | None = None) -> None:
        super().__init__()
        self.title, self.max_steps, self.tokens_per_batch = title, max_steps, tokens_per_batch
        self.loss: float | None = None
        self.dev: str = ""
        self.best: float | None = None
        self.best_epoch = 0
        self._in_terminal = False
        self._live = live(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
        )
        self._task = self._live.add_task(title, total=None, status="")

    def disable(self) -> None:
        """Lightning calls this in all processes but the first."""
        self.title = ""

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "best_epoch": self.best_epoch}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.best_epoch = state_dict["best"], state_dict["best_epoch"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._start, self._first_step, self._looked = time.monotonic(), trainer.global_step, 0.0
        self._in_terminal = in_terminal() and bool(self.title)
        if self._in_terminal:
            self._live.update(self._task, total=self._total(trainer), completed=trainer.global_step)
            self._live.start()

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if not self._in_terminal or time.monotonic() - self._looked < _PAUSE:
            return
        self._looked = time.monotonic()
        self._look(trainer)
        status = "  ".join(filter(None, (self._epoch(trainer), self._loss(), self._speed(trainer), self.dev)))
        self._live.update(self._task, total=self._total(trainer), completed=trainer.global_step, status=status)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, TaskModule)
        metric, epoch = pl_module.metric, 0 if trainer.sanity_checking else trainer.current_epoch + 1
        value = float(trainer.callback_metrics[f"dev/{metric.name}"])
        if is_better(metric, value, self.best):
            self.best, self.best_epoch = value, epoch
        self.dev = f"dev {metric.name} {value:.2f}  best {self.best:.2f} (epoch {self.best_epoch})"
        if trainer.sanity_checking or self._in_terminal or not self.title:
            return
        self._look(trainer)
        parts = (self._epoch(trainer), self._loss(), self.dev, self._speed(trainer), self._left(trainer))
        say(f"{self.title}: {'  '.join(filter(None, parts))}")

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._in_terminal:
            self._live.stop()

    def _look(self, trainer: pl.Trainer) -> None:
        loss = trainer.callback_metrics.get("train/loss")
        self.loss = None if loss is None else float(loss)

    def _epoch(self, trainer: pl.Trainer) -> str:
        return f"epoch {trainer.current_epoch + 1} of {trainer.max_epochs}"

    def _loss(self) -> str:
        return "" if self.loss is None else f"loss {self.loss:.3f}"

    def _speed(self, trainer: pl.Trainer) -> str:
        steps, seconds = trainer.global_step - self._first_step, time.monotonic() - self._start
        return "" if self.tokens_per_batch is None else f"{self.tokens_per_batch * steps / seconds:,.0f} tokens/s"

    def _left(self, trainer: pl.Trainer) -> str:
        steps, total = trainer.global_step - self._first_step, self._total(trainer)
        if not steps or total is None:
            return ""
        seconds = (time.monotonic() - self._start) / steps * max(0, total - trainer.global_step)
        return f"at most {seconds / 60:.0f} min left" if seconds >= 90 else f"at most {seconds:.0f} s left"

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
