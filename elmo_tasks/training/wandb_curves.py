"""Curves in W&B, which are one history however often a run was killed and resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lightning_utilities.core.rank_zero import rank_zero_only
from pytorch_lightning.loggers import WandbLogger

from elmo_tasks.training.curves import numbers


class WandbCurves(WandbLogger):
    """Lightning's W&B logger for runs that are resumed.

    An offline run is a folder for each process, and uploading a second one of the same ID would replace the history of
    the first. So each begins with what those before it had logged, and the last one is the whole run.

    Args:
        mode: ``offline``, or ``online``: then the server has the history.
        arguments: of Lightning's logger.
    """

    def __init__(self, *, mode: str, **arguments: Any) -> None:
        super().__init__(mode=mode, **arguments)
        self._is_offline = mode == "offline"
        self._lines: list[dict[str, str]] = []

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        if step is not None:
            self._lines.append({"step": str(step), **{key: str(float(value)) for key, value in metrics.items()}})
        super().log_metrics(metrics, step)

    def lines(self) -> list[dict[str, str]]:
        """All that was logged, by column, also by the processes that were resumed."""
        return [*self._lines]

    def resume(self, lines: Sequence[Mapping[str, str]]) -> None:
        """Begin with the lines of an earlier process, which are part of the saved state."""
        if not self._is_offline:
            self._lines = [dict(line) for line in lines]
            return
        for step, values in numbers(lines):
            self.log_metrics({key: float(value) for key, value in values.items()}, step=step)
