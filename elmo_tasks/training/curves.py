"""Curves as ``metrics.csv``, which is complete however often a run was killed and resumed."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from pytorch_lightning.loggers import CSVLogger
from torch import Tensor

NAME = "metrics.csv"


@runtime_checkable
class Resumable(Protocol):
    """A logger whose lines are part of the saved state, so that the curves of a resumed run are whole."""

    def lines(self) -> list[dict[str, str]]:
        """All that was logged, by column; ``step`` is one of them."""

    def resume(self, lines: Sequence[Mapping[str, str]]) -> None:
        """Begin with the lines of an earlier process."""


class Curves(CSVLogger):
    """Lightning's CSV logger for runs that are resumed; by itself it would start a new file in a folder that has one.

    Args:
        folder: where ``metrics.csv`` is written.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / NAME
        super().__init__(str(folder), name="", version="")

    def lines(self) -> list[dict[str, str]]:
        """The lines of the file, each by column, after what is still in memory has been written."""
        self.save()
        return _read(self.path)

    def resume(self, lines: Sequence[Mapping[str, str]]) -> None:
        """Begin with the lines of an earlier process, which are part of the saved state.

        The file of that process may have more lines, written after the last save, or none, if a process was killed
        while it resumed.
        """
        for step, values in numbers(lines):
            self.log_metrics(values, step=step)


def numbers(lines: Sequence[Mapping[str, str]]) -> Iterator[tuple[int, dict[str, Tensor | float]]]:
    """The step and the values of each line."""
    for earlier in lines:
        line = dict(earlier)
        step = int(float(line.pop("step")))
        yield step, {key: _number(value) for key, value in line.items() if value}


def _number(text: str) -> float:
    return int(text) if text.isdecimal() else float(text)


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
