"""The training loop body of every task model: its loss with the ELMo penalty, its metric, its optimizer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau

from elmo_tasks.elmo import MixWeights
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.base import Metric
from elmo_tasks.models.base import TaskModel

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class TaskModule(pl.LightningModule):
    """Trains a task model (see ``models/base.py``).

    Args:
        model: the task model; ELMo's penalty is added to its training loss (end of section 3.3 of the paper: lambda
            times the squared scalars).
        metric: scores plain predictions against plain gold.
        optimizer: makes the optimizer from the trainable parameters.
        schedule: of the learning rate: None leaves it alone, ``linear`` lowers it to zero over the run, ``halve``
            halves it after each epoch that ends without a better dev score, ``decay`` lowers it by a thousandth after
            every hundred updates (Lee et al., 2017).
        max_steps: updates after which the run ends, for ``linear``; -1 for no bound.
    """

    def __init__(
        self,
        *,
        model: TaskModel,
        metric: Metric,
        optimizer: OptimizerFactory,
        schedule: str | None = None,
        max_steps: int = -1,
    ) -> None:
        super().__init__()
        self.schedule, self.max_steps = schedule, max_steps
        self.model = model
        self.metric = metric
        self.make_optimizer = optimizer

    def on_train_start(self) -> None:
        if self.trainer.world_size > 1:  # else every process would drop out the same units
            torch.manual_seed(torch.initial_seed() + self.global_rank)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """The loss with ELMo's penalty; without a trainer, as in :mod:`elmo_tasks.planning`, nothing is logged."""
        loss = self.loss(batch)
        self.log("train/loss", loss.detach(), prog_bar=True, sync_dist=True)
        return loss + self.model.elmo.penalty()

    def loss(self, batch: Any) -> Tensor:
        """The loss of a batch in this process, without the penalty."""
        return self.model.loss(self.model(batch), batch)

    def mixes(self) -> dict[str, MixWeights]:
        """The weights s and gamma of ELMo's mix, by place; empty without ELMo."""
        return self.model.elmo.weights()

    def configure_gradient_clipping(
        self,
        optimizer: Any,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip by norm; a gradient that is not finite never reaches the weights.

        Raises:
            UserError: for such a gradient (of all processes, where there are several).
        """
        weights = [p for group in optimizer.param_groups for p in group["params"]]
        norm = nn.utils.clip_grad_norm_(weights, math.inf if gradient_clip_val is None else gradient_clip_val)
        if not bool(norm.isfinite()):
            raise self._broken("the gradient")

    def gather(self, part: Tensor) -> Tensor:
        """The tensors of all processes: ``[...]`` each, ``[n_processes, ...]`` together."""
        gathered = self.all_gather(part)
        assert isinstance(gathered, Tensor)
        return gathered

    def _broken(self, what: str) -> UserError:
        return UserError(
            f"{what} is not finite after {self.trainer.global_step:,} updates: training has diverged; "
            "lower task.optimizer.lr or task.training.grad_norm"
        )

    def on_validation_epoch_start(self) -> None:
        if not all(bool(p.isfinite().all()) for p in self.parameters()):
            raise self._broken("a weight")
        self.metric.reset()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.metric.update(self.model.decode(self.model(batch), batch), batch.gold)

    def on_validation_epoch_end(self) -> None:
        for name, value in self.metric.compute().items():
            self.log(f"dev/{name}", value, prog_bar=name == self.metric.name)
        self.log("train/lr", self.trainer.optimizers[0].param_groups[0]["lr"])
        for place, weights in self.mixes().items():
            self.log(f"elmo/{place}/gamma", weights["gamma"])
            for layer, s in enumerate(weights["s"]):
                self.log(f"elmo/{place}/s_{layer}", s)

    def on_train_epoch_end(self) -> None:
        """Halve the learning rate before the state is saved; Lightning does so after it, and never when it resumes."""
        schedule = self.lr_schedulers()
        if isinstance(schedule, ReduceLROnPlateau):
            schedule.step(self.trainer.callback_metrics[f"dev/{self.metric.name}"])

    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        """One step of a schedule, except for the one that :meth:`on_train_epoch_end` steps."""
        if not isinstance(scheduler, ReduceLROnPlateau):
            super().lr_scheduler_step(scheduler, metric)

    def configure_optimizers(self) -> Any:
        optimizer = self.make_optimizer([p for p in self.parameters() if p.requires_grad])
        if self.schedule is None:
            return optimizer
        return {"optimizer": optimizer, "lr_scheduler": self._lr_scheduler(optimizer)}

    def _lr_scheduler(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """The schedule in the form that Lightning takes."""
        if self.schedule == "halve":
            mode: Literal["min", "max"] = "max" if self.metric.higher_is_better else "min"
            halving = ReduceLROnPlateau(optimizer, mode, factor=0.5, patience=0, threshold=0.0)  # any better is better
            return {"scheduler": halving, "monitor": f"dev/{self.metric.name}"}
        if self.schedule == "decay":
            return {"scheduler": LambdaLR(optimizer, lambda step: 0.999 ** (step // 100)), "interval": "step"}
        n_steps = int(self.trainer.estimated_stepping_batches)
        n_steps = min(n_steps, self.max_steps) if self.max_steps >= 0 else n_steps
        return {"scheduler": LambdaLR(optimizer, lambda step: max(0.0, 1 - step / n_steps)), "interval": "step"}


@torch.no_grad()
def score(model: TaskModel, metric: Metric, batches: Iterable[Any]) -> dict[str, float]:
    """Scores of a model over all of ``batches``, in evaluation mode and full precision."""
    model.eval()
    metric.reset()
    device = next(model.parameters()).device
    for batch in batches:
        batch = batch.to(device)
        metric.update(model.decode(model(batch), batch), batch.gold)
    return metric.compute()
