"""What a kind of input is, and what several kinds are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.options import BiLMOptions

SAMPLE = Path(__file__).parents[2] / "elmo_tasks" / "bundled" / "sample"
TINY = BiLMOptions(filters=((1, 4), (2, 8), (3, 8)), character_dim=4, n_highway=1, dim=12, projection_dim=6)
SENTENCES = [["a", "b"], ["c", "a", "longer", "one"], ["d"]]


@dataclass
class Input:
    """A kind of input.

    Attributes:
        make: writes a whole one into an empty folder and gives the files that may be damaged.
        read: reads it from the folder; raises UserError, or gives what it has read.

    A file whose name ends in ``.json`` is damaged by its structure too.
    """

    make: Callable[[Path], list[Path]]
    read: Callable[[Path], Any]


def some(source: Path, n_bytes: int = 6000) -> bytes:
    """The beginning of a file of the sample, whole lines."""
    content = source.read_bytes()
    return content if len(content) <= n_bytes else content[: content.rfind(b"\n", 0, n_bytes) + 1]


def tiny_bilm() -> BiLM:
    torch.manual_seed(1)
    return BiLM(TINY).eval().requires_grad_(False)
