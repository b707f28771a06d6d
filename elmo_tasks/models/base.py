"""What a task model is: a bare ``nn.Module``, usable from a notebook without Lightning."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor


class TaskModel(Protocol):
    """Three methods over a task's batch, and ``elmo``, an :class:`~elmo_tasks.elmo.Elmo`, if it has places for it."""

    def forward(self, batch: Any) -> Any:
        """An output dataclass; its docstring gives the shapes."""

    def loss(self, out: Any, batch: Any) -> Tensor:
        """A scalar, without the ELMo penalty."""

    def decode(self, out: Any, batch: Any) -> Any:
        """Plain Python predictions, to be compared with ``batch.gold``."""
