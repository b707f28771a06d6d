"""The training loop body of a task model whose batches several processes share."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.training.module import TaskModule


class DistributedTaskModule(TaskModule):
    """Trains with the gradients, and scores with the predictions, that one process would have with the whole batches.

    Distributed data parallel training averages the gradients of the processes. The loss of each is a mean over the
    terms of its own rows (:meth:`~elmo_tasks.models.base.TaskModel.loss_weight`), of which it may have more or fewer
    than the others; so each is weighted by its share of all terms. Dropout draws other numbers in each process.
    """

    def loss(self, batch: Any) -> Tensor:
        return self._share(batch) * super().loss(batch)

    def _share(self, batch: Any) -> float:
        """What the loss of this process is multiplied by, so that the mean over all processes is that of the batch."""
        n_own = 0 if batch.is_placeholder else self.model.loss_weight(batch)
        n_all = int(self.gather(torch.tensor(n_own, device=self.device)).sum())
        return self.trainer.world_size * n_own / n_all

    def on_validation_epoch_start(self) -> None:
        super().on_validation_epoch_start()
        self._scored: list[tuple[Any, Any]] = []

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        predictions = self.model.decode(self.model(batch), batch)
        if not batch.is_placeholder:
            self._scored.append((predictions, batch.gold))

    def on_validation_epoch_end(self) -> None:
        for scored in self._gathered_json(self._scored):
            for predictions, gold in scored:
                self.metric.update(predictions, gold)
        super().on_validation_epoch_end()

    def _gathered_json(self, value: Any) -> list[Any]:
        """The values of all processes, as JSON keeps them."""
        own = torch.frombuffer(bytearray(json.dumps(value).encode("ascii")), dtype=torch.uint8).to(self.device)
        sizes = self.gather(torch.tensor(len(own), device=self.device)).tolist()
        padded = own.new_zeros(max(sizes))
        padded[: len(own)] = own
        texts = self.gather(padded)
        return [json.loads(text[:size].cpu().numpy().tobytes()) for text, size in zip(texts, sizes, strict=True)]
