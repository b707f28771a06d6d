"""The base class of task models: bare ``nn.Module``s, usable in a notebook without Lightning."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Generator, Tensor, nn

from elmo_tasks.elmo import Elmo


class TaskModel(nn.Module):
    """Base of the task models: ``forward``, ``loss`` and ``decode`` over a task's batch.

    ``loss_weight`` too if the loss is not a mean over items.

    Attributes:
        elmo: where ELMo goes. Its penalty is added to the training loss, its weights are logged.
    """

    elmo: Elmo

    @abstractmethod
    def forward(self, batch: Any) -> Any:
        """An output dataclass; its docstring gives the shapes."""

    @abstractmethod
    def loss(self, out: Any, batch: Any) -> Tensor:
        """A scalar, without the ELMo penalty."""

    def loss_weight(self, batch: Any) -> int:
        """How many terms the loss is a mean of, by default items: the weight of this process among several."""
        return len(batch.gold)

    @abstractmethod
    def decode(self, out: Any, batch: Any) -> Any:
        """Plain Python predictions, to be compared with ``batch.gold``."""


@runtime_checkable
class Stateful(Protocol):
    """A model with a state beside its parameters, which is saved and restored with it.

    Attributes:
        carried: pairs of tensors whose dimension 1 is the rows of the batch, or None before the first batch.
        rng: the generator of its random numbers other than dropout.
    """

    carried: list[tuple[Tensor, Tensor]] | None
    rng: Generator


@runtime_checkable
class Probabilistic(Protocol):
    """A model that can be a member of an ensemble: its ``decode`` applies these two methods in turn."""

    def log_probabilities(self, out: Any, batch: Any) -> Tensor:
        """The log-probability of every possible answer, ``[B, ...]``."""

    def choose(self, log_probabilities: Tensor, batch: Any) -> Any:
        """The predictions that :meth:`TaskModel.decode` makes of such a tensor."""


@dataclass
class ClassifierOutput:
    """``logits``: float ``[B, K]``."""

    logits: Tensor
