"""What training and scoring take, in seconds and memory: both are tried on some batches."""

from __future__ import annotations

import random
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from elmo_tasks.data.batching import item_lengths
from elmo_tasks.data.module import TaskData
from elmo_tasks.planning.timing import extrapolate, time_batches
from elmo_tasks.training.module import TaskModule

_DEV_BATCHES = 50  # that are scored at most


@dataclass(frozen=True)
class StepCost:
    """What training and scoring take.

    Attributes:
        epoch_seconds: of all updates of an epoch.
        dev_seconds: of scoring the dev set.
        n_batches: updates of an epoch.
        peak_bytes: memory of this process after the largest batch, its data and optimizer included.
        bytes_before: the same before the first batch.
    """

    epoch_seconds: float
    dev_seconds: float
    n_batches: int
    peak_bytes: int
    bytes_before: int


class Trial:
    """A model that is trained and scored to see what that takes.

    Args:
        module: holds the model and makes its optimizer; the weights change.
        device: where to train.
        grad_norm: maximum norm of the gradient; None for no clipping.
    """

    def __init__(self, module: TaskModule, device: str, grad_norm: float | None) -> None:
        self.module, self.device, self.grad_norm = module, device, grad_norm
        self.model = module.model.to(device)
        self.optimizer = module.make_optimizer([p for p in module.parameters() if p.requires_grad])

    def update(self, batch: Any) -> None:
        """One update of the weights."""
        loss = self.module.training_step(batch.to(self.device), 0)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_norm or torch.inf).item()
        self.optimizer.step()

    @torch.no_grad()
    def score(self, batch: Any) -> None:
        """Predict, and count in the metric."""
        self.module.validation_step(batch.to(self.device), 0)


class Batches:
    """The batches of a loader.

    Args:
        data: read, with a store whose layers need not be real.
        loader: of ``data``.

    Attributes:
        items: all items.
        numbers: which items each batch has.
        sizes: padded tokens of each batch, in all rows that the model reads.
    """

    def __init__(self, data: TaskData, loader: DataLoader[Any]) -> None:
        self.loader, self._collate = loader, data.collate
        items: Any = loader.dataset
        batches: Any = loader.batch_sampler
        self.items: Sequence[Any] = items
        self.numbers: list[list[int]] = list(batches)
        self.sizes = batch_sizes(data, items, self.numbers)

    def collate(self, number: int) -> Any:
        """One batch."""
        return self._collate([self.items[k] for k in self.numbers[number]])


def step_cost(
    module: TaskModule, data: TaskData, device: str, grad_norm: float | None, allow: Callable[[int], None]
) -> StepCost:
    """Time updates on random batches of an epoch, try one on its largest batch, and time scoring on some of dev.

    Args:
        module, device, grad_norm: see :class:`Trial`.
        data: read, with a store whose layers need not be real.
        allow: gets the bytes that the largest batch will probably take before it is tried, and may raise.
    """
    before = peak_bytes()
    trial, epoch = Trial(module, device, grad_norm), Batches(data, data.epoch(0))
    timed = time_training(trial, epoch)
    try_largest_batch(trial, epoch, max(size for size, _ in timed), before, allow)
    dev = Batches(data, data.batches("dev"))
    scored = time_scoring(trial, dev)
    return StepCost(
        epoch_seconds=extrapolate(timed, epoch.sizes),
        dev_seconds=extrapolate(scored, dev.sizes),
        n_batches=len(epoch.sizes),
        peak_bytes=peak_bytes(),
        bytes_before=before,
    )


def time_training(trial: Trial, epoch: Batches) -> list[tuple[int, float]]:
    """Size and seconds of the first updates of an epoch."""
    trial.model.train()
    return time_batches(epoch.loader, epoch.sizes, trial.update)


def try_largest_batch(trial: Trial, epoch: Batches, tried: int, before: int, allow: Callable[[int], None]) -> None:
    """Train on the largest batch of an epoch, if that is allowed.

    Args:
        trial: in training mode.
        epoch: its batches.
        tried: size of the largest batch so far.
        before: bytes that the process had before the first batch.
        allow: see :func:`step_cost`.
    """
    largest = max(epoch.sizes)
    if largest > tried:
        allow(before + round((peak_bytes() - before) * largest / tried))
        trial.update(epoch.collate(epoch.sizes.index(largest)))


def time_scoring(trial: Trial, dev: Batches) -> list[tuple[int, float]]:
    """Size and seconds of scoring some batches, drawn at random."""
    trial.model.eval()
    chosen = random.Random(0).sample(range(len(dev.sizes)), min(len(dev.sizes), _DEV_BATCHES))
    scored = time_batches(map(dev.collate, chosen), [dev.sizes[number] for number in chosen], trial.score)
    trial.module.metric.reset()
    return scored


def batch_sizes(data: TaskData, items: Sequence[Any], batches: Sequence[Sequence[int]]) -> list[int]:
    """Padded tokens of each batch of some items, in all rows that the model reads."""
    lengths = [item_lengths(data.reader, item) for item in items]
    rows = [data.reader.n_rows(item) for item in items]
    return [
        sum(rows[k] for k in batch) * sum(map(max, zip(*(lengths[k] for k in batch), strict=True))) for batch in batches
    ]


def peak_bytes() -> int:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
