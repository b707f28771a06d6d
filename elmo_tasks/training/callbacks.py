"""Callbacks that keep the average weights, the best weights and the curve of a run."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from elmo_tasks.errors import shortened
from elmo_tasks.metrics.base import Metric
from elmo_tasks.rows.fields import Place
from elmo_tasks.rows.parts import CurvePoint, Mix
from elmo_tasks.tensors import read_tensors, write_tensors
from elmo_tasks.training.module import TaskModule


class AverageWeights(pl.Callback):
    """An exponential moving average of the weights; training continues with the weights themselves.

    The average starts with the first update, and its decay grows with the number of updates: update n (from 0)
    keeps ``min(decay, (1 + n) / (10 + n))`` of it, as TensorFlow does when given the number of updates. A fixed
    decay of 0.999 would still hold a third of the untrained weights after a thousand updates.

    :class:`BestCheckpoint` scores and saves the average.

    Args:
        decay: the share of the average that an update keeps at most.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.n_updates = 0
        self.average: list[Tensor] = []

    def state_dict(self) -> dict[str, Any]:
        return {"n_updates": self.n_updates, "average": self.average}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.n_updates, self.average = state_dict["n_updates"], state_dict["average"]

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.average = [mean.to(pl_module.device) for mean in self.average]

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        weights = _trained(pl_module)
        if not self.average:
            self.average = [p.detach().clone() for p in weights]
        kept = min(self.decay, (1 + self.n_updates) / (10 + self.n_updates))
        torch._foreach_lerp_(self.average, [p.detach() for p in weights], 1 - kept)
        self.n_updates += 1

    def swap(self, module: pl.LightningModule) -> None:
        """Exchange the weights of a module and their average; a second call restores both."""
        for p, mean in zip(_trained(module), self.average, strict=bool(self.average)):
            weights = p.detach().clone()
            p.data.copy_(mean)
            mean.copy_(weights)


class BestCheckpoint(pl.Callback):
    """Writes the model's weights whenever the dev score is the best so far, and records the curve.

    The file holds the task model alone, as plain tensors (safetensors): no biLM, no pickle. It is replaced in one
    rename, so that a killed process leaves the earlier best weights.

    Args:
        path: of the file.
        average: the weights that are scored and saved in place of the model's own, if any.
    """

    def __init__(self, path: Path, average: AverageWeights | None = None) -> None:
        self.path, self.average = path, average
        self.best: float | None = None
        self.best_epoch = self.best_step = 0
        self.curve: list[dict[str, Any]] = []
        self._before = 0.0  # seconds of training in earlier processes

    def state_dict(self) -> dict[str, Any]:
        names = ("best", "best_epoch", "best_step", "curve", "seconds")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        names = ("best", "best_epoch", "best_step", "curve", "seconds")
        best, epoch, step, curve, seconds = (state_dict[name] for name in names)
        numbers = (epoch, step, seconds, *(() if best is None else (best,)))
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError(f"expected numbers, found {shortened(str(numbers), 60)}")
        for point in curve:
            curve_point(point)  # which checks it
        self.best, self.best_epoch, self.best_step, self.curve, self._before = best, epoch, step, curve, seconds

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._start = time.perf_counter() - self._before

    @property
    def seconds(self) -> float:
        """Seconds of training so far, without the time between two processes."""
        return time.perf_counter() - self._start

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if self.average is not None:
            self.average.swap(pl_module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, TaskModule)
        metric = pl_module.metric
        scores = metric.compute()
        value, epoch = scores[metric.name], trainer.current_epoch + 1
        loss = trainer.callback_metrics.get("train/loss")
        point = {
            "epoch": epoch,
            "step": trainer.global_step,
            "dev": scores,
            "seconds": round(self.seconds, 2),
            "train_loss": None if loss is None else float(loss),
            "elmo": pl_module.mixes(),
        }
        self.curve.append(point)
        if is_better(metric, value, self.best):
            self.best, self.best_epoch, self.best_step = value, epoch, trainer.global_step
            if trainer.is_global_zero:
                self._save(pl_module.model)
        if self.average is not None:
            self.average.swap(pl_module)

    def restore(self, model: nn.Module) -> None:
        """Load the best weights into ``model``."""
        model.load_state_dict(read_tensors(self.path))

    def _save(self, model: nn.Module) -> None:
        tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
        write_tensors(self.path, tensors, "the weights")


class Patience(pl.Callback):
    """Ends training after some epochs without a better dev score, however often dev is scored within an epoch.

    Args:
        epochs: how many; None for training that patience never ends.
        best: knows the epoch of the best score.
    """

    def __init__(self, epochs: int | None, best: BestCheckpoint) -> None:
        self.epochs, self.best = epochs, best
        self.is_over = False

    def state_dict(self) -> dict[str, Any]:
        return {"is_over": self.is_over}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.is_over = state_dict["is_over"]

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        is_whole = trainer.fit_loop.epoch_loop.batch_progress.is_last_batch  # not cut off by the end of the budget
        if self.epochs is not None and is_whole:
            self.is_over = trainer.current_epoch + 1 - self.best.best_epoch >= self.epochs
            trainer.should_stop = trainer.should_stop or self.is_over


class ScoreDev(pl.Callback):
    """Scores dev at intervals within an epoch, at its end, and after the last update of the run.

    Lightning alone would lose what was learned after the last score of an epoch. It refuses an interval that is longer
    than an epoch; here, such an interval leaves the score at the end of each epoch. And Lightning's own ``max_steps``
    counts an epoch twice if training is resumed at the end of that epoch.

    Args:
        every: updates between two scores; None for the end of each epoch alone.
        last: updates of the run at most; -1 for no bound.
    """

    def __init__(self, every: int | None, last: int) -> None:
        self.every, self.last = every, last

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._stop(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._stop(trainer)
        due = self.every is not None and (batch_idx + 1) % self.every == 0
        trainer.val_check_batch = 1 if due or trainer.is_last_batch or trainer.should_stop else math.inf

    def _stop(self, trainer: pl.Trainer) -> None:
        trainer.should_stop = trainer.should_stop or trainer.global_step >= self.last >= 0


def curve_point(point: dict[str, Any]) -> CurvePoint:
    """A point of :attr:`BestCheckpoint.curve` as a row has it.

    Raises:
        ValueError: or KeyError, TypeError, if it is none.
    """
    return CurvePoint(**{**point, "elmo": mixes(point["elmo"])})


def mixes(weights: dict[Any, Any]) -> dict[Place, Mix]:
    """The weights of ELMo's mix, by place, as a row has them."""
    return {place: Mix(s=tuple(mix["s"]), gamma=mix["gamma"]) for place, mix in weights.items()}


def is_better(metric: Metric, value: float, best: float | None) -> bool:
    """Whether a score is better than the best one so far, if there is one."""
    return best is None or (value > best if metric.higher_is_better else value < best)


def _trained(module: pl.LightningModule) -> list[nn.Parameter]:
    """The parameters of the optimizer, some of which may be frozen for some epochs, in the module's order."""
    groups = [group for optimizer in module.trainer.optimizers for group in optimizer.param_groups]
    trained = {id(p) for group in groups for p in group["params"]}
    return [p for p in module.parameters() if id(p) in trained]
