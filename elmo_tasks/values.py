"""What numbers and texts may be: annotations of constructors and of the configuration's sections."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Range:
    """Of a number: its bounds, and whether a bound itself is left out."""

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False


@dataclass(frozen=True)
class Matching:
    """Of a text: a regular expression for all of it, and what that is in words."""

    pattern: str
    words: str


Size = Annotated[int, Range(1)]
Count = Annotated[int, Range(0)]
Rate = Annotated[float, Range(0, 1, below=True)]
"""Of dropout, or the decay of an average."""
Probability = Annotated[float, Range(0, 1)]
Share = Annotated[float, Range(0, 1, above=True)]
Positive = Annotated[float, Range(0, above=True)]
NotNegative = Annotated[float, Range(0)]
Seed = Annotated[int, Range(0, 2**32 - 1)]
Name = Annotated[str, Matching(r"\w[\w.-]{0,59}", "a name of letters, digits, '.', '_' and '-', 60 at most")]
