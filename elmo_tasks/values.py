"""Annotations that say which numbers and texts are valid, for constructors and sections of the configuration."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class Range:
    """The bounds of a number; ``above`` and ``below`` exclude the bound itself."""

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False

    def check(self, kind: type[float], value: Any) -> Any:
        """The value as it is, so that 0 does not become 0.0.

        Args:
            kind: int or float; a float may be whole.
            value: of any type.

        Raises:
            ValueError: if it is of another type, not finite or out of bounds.
        """
        if not isinstance(value, (int, kind)) or isinstance(value, bool) or not -math.inf < value < math.inf:
            raise ValueError("another type, or not finite")
        if not self.low <= value <= self.high:
            raise ValueError("out of bounds")
        if (self.above and value == self.low) or (self.below and value == self.high):
            raise ValueError("a bound that is excluded")
        return value

    def __get_pydantic_core_schema__(self, source: type[float], handler: Any) -> CoreSchema:
        return _checked_by(partial(self.check, source))


@dataclass(frozen=True)
class Matching:
    """A text that matches a regular expression as a whole; ``words`` describes it in messages."""

    pattern: str
    words: str

    def check(self, value: Any) -> Any:
        """The value as it is.

        Raises:
            ValueError: if it is no text that matches.
        """
        if not isinstance(value, str) or re.fullmatch(self.pattern, value) is None:
            raise ValueError("another text")
        return value

    def __get_pydantic_core_schema__(self, source: type, handler: Any) -> CoreSchema:
        return _checked_by(self.check)


def _checked_by(check: Callable[[Any], Any]) -> CoreSchema:
    """Pydantic's schema of a check; a machine that has no pydantic can use this module for the rest."""
    from pydantic_core.core_schema import no_info_plain_validator_function

    return no_info_plain_validator_function(check)


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
