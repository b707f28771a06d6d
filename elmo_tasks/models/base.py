"""The base class of task models: bare ``nn.Module``s, usable in a notebook without Lightning."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.elmo import Elmo


class TaskModel(nn.Module):
    """Base of the task models: ``forward``, ``loss`` and ``decode`` over a task's batch.

    A model whose loss is not a mean over items also overrides ``loss_weight``.

    Attributes:
        elmo: where ELMo goes. Its penalty is added to the training loss, its weights are logged.
    """

    elmo: Elmo

    @property
    def n_trained(self) -> int:
        """How many numbers are trained."""
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    @abstractmethod
    def forward(self, batch: Any) -> Any:
        """An output dataclass; its docstring gives the shapes."""

    @abstractmethod
    def loss(self, out: Any, batch: Any) -> Tensor:
        """The loss without the ELMo penalty, float ``[]``."""

    def loss_weight(self, batch: Any) -> int:
        """How many terms the loss is a mean of, by default items; it weights the loss of one of several processes."""
        return len(batch.gold)

    @abstractmethod
    def decode(self, out: Any, batch: Any) -> Any:
        """Plain Python predictions, to be compared with ``batch.gold``."""


@runtime_checkable
class Probabilistic(Protocol):
    """A model that can be a member of an ensemble: its ``decode`` applies these two methods in turn."""

    def log_probabilities(self, out: Any, batch: Any) -> Tensor:
        """The log-probability of every possible answer, ``[B, ...]``."""

    def choose(self, log_probabilities: Tensor, batch: Any) -> Any:
        """The predictions that :meth:`TaskModel.decode` makes of such a tensor."""


@runtime_checkable
class Scored(Protocol):
    """A model that can choose between its predictions for several parts of an item."""

    def scores(self, out: Any, batch: Any) -> Tensor:
        """How sure :meth:`TaskModel.decode` is of each prediction, ``[B]``, comparable between inputs of any length."""


@dataclass
class ClassifierOutput:
    """``logits``: float ``[B, K]``."""

    logits: Tensor


class Classifier(TaskModel):
    """Base of the models that choose one of K labels for each item; the batch has ``labels``, long ``[B]``.

    A subclass adds ``forward``, which returns a :class:`ClassifierOutput`. It can be a member of an ensemble.
    """

    def loss(self, out: ClassifierOutput, batch: Any) -> Tensor:
        """Mean cross-entropy, float ``[]``."""
        return F.cross_entropy(out.logits, batch.labels)

    def log_probabilities(self, out: ClassifierOutput, batch: Any) -> Tensor:
        """The log-probability of each label, ``[B, K]``."""
        return out.logits.log_softmax(dim=1)

    def choose(self, log_probabilities: Tensor, batch: Any) -> list[int]:
        """The most probable label of each item."""
        labels: list[int] = log_probabilities.argmax(dim=1).tolist()
        return labels

    def decode(self, out: ClassifierOutput, batch: Any) -> list[int]:
        return self.choose(self.log_probabilities(out, batch), batch)
