"""A text and its label: items and batches of the tasks that classify single texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text


@dataclass
class LabelledText:
    """A text and the number of its label."""

    tokens: list[str]
    label: int


@dataclass
class LabelledBatch(OnDevice):
    """Attributes:
    text: the texts.
    labels: long ``[B]``.
    gold: the labels as plain numbers.
    """

    text: Text
    labels: Tensor
    gold: list[int]

    @classmethod
    def of(cls, items: Sequence[LabelledText], text: Text) -> LabelledBatch:
        """The items' labels beside their texts."""
        gold = [item.label for item in items]
        return cls(text, torch.tensor(gold), gold)
