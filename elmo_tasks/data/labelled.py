"""A text and its label: items, batches and the common part of the readers of tasks that classify single texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.batch import IGNORE_INDEX, OnDevice, Text
from elmo_tasks.data.reader import Reader


@dataclass
class LabelledText:
    """A text and the number of its label."""

    tokens: list[str]
    label: int


@dataclass
class LabelledBatch(OnDevice):
    """B labelled texts.

    Attributes:
        text: the texts.
        labels: long ``[B]``.
        gold: the labels as plain numbers.
    """

    text: Text
    labels: Tensor
    gold: list[int]


class LabelledReader(Reader[LabelledText]):
    """Base of the readers of single texts with a label; a subclass defines :attr:`labels` and :meth:`read_file`."""

    labels: ClassVar[Sequence[str]]
    """The names of the labels, by number."""

    fields: ClassVar[Mapping[str, str]] = {"text": "a text"}

    def texts(self, item: LabelledText) -> list[list[str]]:
        return [item.tokens]

    def model_parts(self) -> dict[str, Any]:
        """The number of labels."""
        return {"n_labels": len(self.labels)}

    def collate(self, items: list[LabelledText], texts: list[Text]) -> LabelledBatch:
        """Texts with their labels."""
        gold = [item.label for item in items]
        return LabelledBatch(texts[0], torch.tensor(gold), gold)

    def from_json(self, fields: Mapping[str, Any], where: str) -> LabelledText:
        self._check_fields(fields, where)
        return LabelledText(self._sentence(fields["text"], f"{where}: text"), IGNORE_INDEX)

    def to_json(self, item: LabelledText, prediction: int) -> dict[str, Any]:
        """The label by its name."""
        return {"label": self.labels[prediction]}
