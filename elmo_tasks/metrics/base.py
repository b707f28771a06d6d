"""The interface of metrics, which take in predictions and gold batch by batch and score the whole data set."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


class Metric(Protocol):
    """Attributes: ``name``, the score that chooses the checkpoint, and whether ``higher_is_better``.

    ``reported`` names the scores that tables show, ``name`` first; ``bounds`` are the least and the largest value that
    these can have (None: no bound).
    """

    name: str
    higher_is_better: bool

    @property
    def bounds(self) -> tuple[float | None, float | None]: ...

    @property
    def reported(self) -> tuple[str, ...]: ...

    def reset(self) -> None:
        """Forget everything."""

    def update(self, predictions: Any, gold: Any) -> None:
        """Take in one batch, in the form that the model's ``decode`` and the batch's ``gold`` have."""

    def compute(self) -> dict[str, float]:
        """Scores of all that was taken in: percentages, except perplexities."""


@runtime_checkable
class Exportable(Protocol):
    """A metric whose benchmark has an official scorer."""

    def files(self) -> dict[str, str]:
        """Name and content of the files that the scorer reads, for all that was taken in."""
