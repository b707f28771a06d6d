"""Annotations that say which numbers and texts are valid, for constructors and sections of the configuration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Range:
    """The bounds of a number; ``above`` and ``below`` exclude the bound itself."""

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False


@dataclass(frozen=True)
class Matching:
    """A text that matches a regular expression as a whole; ``words`` describes it in messages."""

    pattern: str
    words: str


Size = Annotated[int, Range(1)]
Width = Annotated[int, Range(1, 100_000)]
"""The width of a layer."""
Depth = Annotated[int, Range(1, 1000)]
"""A number of layers."""
Count = Annotated[int, Range(0)]
Column = Annotated[int, Range(1, 1000)] | Annotated[int, Range(-1000, -1)]
"""A column of a file, from 1, or from the last one, which is -1, backwards."""
Rate = Annotated[float, Range(0, 1, below=True)]
"""A dropout rate, or the decay of an average."""
Probability = Annotated[float, Range(0, 1)]
Share = Annotated[float, Range(0, 1, above=True)]
DevBatches = Share | Size
"""How much of the dev data is scored during training: a share (float) or a number (int) of its batches."""
Positive = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Seed = Annotated[int, Range(0, 2**32 - 1)]
Name = Annotated[str, Matching(r"\w[\w.-]{0,59}", "a name of letters, digits, '.', '_' and '-', 60 at most")]


def is_all(batches: float) -> bool:
    """Whether a value of `DevBatches` means all of them: 1.0 does, 1 is one batch."""
    return isinstance(batches, float) and batches == 1
