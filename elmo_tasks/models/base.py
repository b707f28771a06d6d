"""What a task model is: a bare ``nn.Module``, usable from a notebook without Lightning."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Generator, Tensor, nn


class TaskModel(nn.Module):
    """Base of the task models: three methods over a task's batch.

    ``elmo``, an :class:`~elmo_tasks.elmo.Elmo`, is there if the model has places for it.
    """

    @abstractmethod
    def forward(self, batch: Any) -> Any:
        """An output dataclass; its docstring gives the shapes."""

    @abstractmethod
    def loss(self, out: Any, batch: Any) -> Tensor:
        """A scalar, without the ELMo penalty."""

    def loss_weight(self, batch: Any) -> int:
        """How many terms the loss is a mean of, by which the processes that share a batch weight theirs: its items."""
        return len(batch.gold)

    @abstractmethod
    def decode(self, out: Any, batch: Any) -> Any:
        """Plain Python predictions, to be compared with ``batch.gold``."""


@runtime_checkable
class Stateful(Protocol):
    """A model with a state beside its parameters, which is saved and restored with it.

    Attributes:
        carried: pairs of tensors whose dimension 1 is the rows of the batch, or None before the first batch.
        rng: what it draws from, beside dropout.
    """

    carried: list[tuple[Tensor, Tensor]] | None
    rng: Generator


@runtime_checkable
class Probabilistic(Protocol):
    """What a member of an ensemble needs besides: ``decode`` is then the first method, then the second."""

    def log_probabilities(self, out: Any, batch: Any) -> Tensor:
        """Of every possible answer, by its place in a tensor ``[B, ...]``."""

    def choose(self, log_probabilities: Tensor, batch: Any) -> Any:
        """The predictions that :meth:`TaskModel.decode` makes of such a tensor."""


@dataclass
class ClassifierOutput:
    """``logits``: float ``[B, K]``."""

    logits: Tensor
