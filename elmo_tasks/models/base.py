"""What a task model is: a bare ``nn.Module``, usable from a notebook without Lightning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Generator, Tensor


class TaskModel(Protocol):
    """Three methods over a task's batch, and ``elmo``, an :class:`~elmo_tasks.elmo.Elmo`, if it has places for it."""

    def forward(self, batch: Any) -> Any:
        """An output dataclass; its docstring gives the shapes."""

    def loss(self, out: Any, batch: Any) -> Tensor:
        """A scalar, without the ELMo penalty."""

    def decode(self, out: Any, batch: Any) -> Any:
        """Plain Python predictions, to be compared with ``batch.gold``."""


@runtime_checkable
class Carries(Protocol):
    """A model with a state beside its parameters, which goes on when the model does.

    Attributes:
        carried: pairs of tensors whose dimension 1 is the rows of the batch, or None before the first batch.
        chance: what it draws from, beside dropout.
    """

    carried: list[tuple[Tensor, Tensor]] | None
    chance: Generator


class Votes(Protocol):
    """What a model needs besides to be a member of an ensemble; ``decode`` is then the two, one after the other."""

    def log_probabilities(self, out: Any, batch: Any) -> Tensor:
        """Of every possible answer, by its place in a tensor ``[B, ...]``."""

    def choose(self, log_probabilities: Tensor, batch: Any) -> Any:
        """The predictions that :meth:`TaskModel.decode` makes of such a tensor."""


@dataclass
class ClassifierOutput:
    """``logits``: float ``[B, K]``."""

    logits: Tensor
