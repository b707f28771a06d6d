"""The training loop body of a biLM, and its callbacks: a new softmax is trained first, the memory is bounded."""

from __future__ import annotations

from typing import Any, cast

import pytorch_lightning as pl
import torch
from torch import Tensor

from elmo_tasks.metrics.base import Summable
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.training.memory import HeapTrimmer
from elmo_tasks.training.module import TaskModule


class LanguageModelModule(TaskModule):
    """Trains a biLM (see :class:`~elmo_tasks.training.module.TaskModule`), on one process or several.

    The state that the model's rows carry and its generator of candidates are saved and restored with its weights.
    """

    model: LanguageModel

    def on_validation_epoch_end(self) -> None:
        if self.trainer.world_size > 1 and isinstance(self.metric, Summable):
            own = torch.tensor(self.metric.sums, dtype=torch.float64, device=self.device)
            self.metric.sums = self.gather(own).sum(dim=0).tolist()
        super().on_validation_epoch_end()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        carried = self.model.carried
        checkpoint["carried"] = carried and [tuple(map(self._gather_rows, pair)) for pair in carried]
        checkpoint["rng"] = self.model.rng.get_state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        carried, rank, n = checkpoint["carried"], self.global_rank, self.trainer.world_size
        self.model.carried = carried and [tuple(part.chunk(n, dim=1)[rank] for part in pair) for pair in carried]
        self.model.rng.set_state(checkpoint["rng"])

    def _gather_rows(self, part: Tensor) -> Tensor:
        """The rows of all processes side by side; every process must call this."""
        if self.trainer.world_size == 1:
            return part
        return torch.cat(list(self.gather(part.to(self.device))), dim=1)


class SoftmaxFirst(pl.Callback):
    """Keeps the biLM as it is for some epochs, while a new softmax is trained on it; then both are trained."""

    def __init__(self, n_epochs: int) -> None:
        self.n_epochs = n_epochs

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *_: Any) -> None:
        model = cast(LanguageModel, pl_module.model)
        model.bilm.requires_grad_(trainer.current_epoch >= self.n_epochs)  # always: a run may be resumed in an epoch


class TrimHeap(pl.Callback):
    """Bounds the memory of the process; see :class:`~elmo_tasks.training.memory.HeapTrimmer`."""

    def __init__(self) -> None:
        self.trimmer = HeapTrimmer()

    def on_train_batch_end(self, *_: Any) -> None:
        self.trimmer.after_step()

    def on_validation_batch_end(self, *_: Any) -> None:
        self.trimmer.after_step()
