"""The one training loop body: any task model, its loss with the ELMo penalty, its metric, its optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from elmo_tasks.metrics.base import Metric
from elmo_tasks.models.base import Carries

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class TaskModule(pl.LightningModule):
    """Trains a task model (see ``models/base.py``).

    Args:
        model: the task model; if it has an ``elmo``, its penalty is added to the training loss (equation in
            section 3.1 of the paper: lambda times the squared scalars).
        metric: scores plain predictions against plain gold.
        optimizer: makes the optimizer from the trainable parameters.
        schedule: of the learning rate: None leaves it alone, ``linear`` lets it fall to zero over the run, ``halve``
            halves it after each epoch without a better dev score, ``decay`` takes a thousandth of it after every
            hundred updates (Lee et al., 2017).
    """

    def __init__(
        self, *, model: nn.Module, metric: Metric, optimizer: OptimizerFactory, schedule: str | None = None
    ) -> None:
        super().__init__()
        self.schedule = schedule
        self.model = model
        self.metric = metric
        self.make_optimizer = optimizer

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        loss: Tensor = self.model.loss(self.model(batch), batch)  # type: ignore[operator]
        self.log("train/loss", loss.detach(), prog_bar=True)
        elmo = getattr(self.model, "elmo", None)
        return loss if elmo is None else loss + elmo.penalty()

    def on_validation_epoch_start(self) -> None:
        self.metric.reset()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.metric.update(self.model.decode(self.model(batch), batch), batch.gold)  # type: ignore[operator]

    def on_validation_epoch_end(self) -> None:
        for name, value in self.metric.compute().items():
            self.log(f"dev/{name}", value, prog_bar=name == self.metric.name)
        elmo = getattr(self.model, "elmo", None)
        for place, weights in ({} if elmo is None else elmo.weights()).items():
            self.log(f"elmo/{place}/gamma", weights["gamma"])
            for layer, s in enumerate(weights["s"]):
                self.log(f"elmo/{place}/s_{layer}", s)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if isinstance(self.model, Carries):
            checkpoint["carried"] = self.model.carried

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if isinstance(self.model, Carries):
            self.model.carried = checkpoint["carried"]

    def configure_optimizers(self) -> Any:
        optimizer = self.make_optimizer([p for p in self.parameters() if p.requires_grad])
        schedule: torch.optim.lr_scheduler.LRScheduler
        if self.schedule == "linear":
            steps = int(self.trainer.estimated_stepping_batches)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, 1 - step / steps))
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
        if self.schedule == "decay":
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.999 ** (step // 100))
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
        if self.schedule == "halve":
            mode: Literal["min", "max"] = "max" if self.metric.higher_is_better else "min"
            plateau = torch.optim.lr_scheduler.ReduceLROnPlateau
            schedule = plateau(optimizer, mode, factor=0.5, patience=0, threshold=0.0)  # any better score is better
            monitor = f"dev/{self.metric.name}"
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": monitor}}
        return optimizer


@torch.no_grad()
def score(model: nn.Module, metric: Metric, batches: Iterable[Any]) -> dict[str, float]:
    """Scores of a model over all of ``batches``, in evaluation mode and full precision."""
    model.eval()
    metric.reset()
    device = next(model.parameters()).device
    for batch in batches:
        batch = batch.to(device)
        metric.update(model.decode(model(batch), batch), batch.gold)  # type: ignore[operator]
    return metric.compute()
