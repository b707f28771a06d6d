"""A task's sentences as text for a language model: its reader's items without their labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from elmo_tasks.data.reader import Reader
from elmo_tasks.data.source import Source
from elmo_tasks.data.splits import read_splits, take_fraction
from elmo_tasks.nn.characters import composed


class TaskText:
    """The token lists of a task's training and dev items, composed (NFC), with all repetitions in the files.

    A text that several items share (a SQuAD paragraph with its questions) is read once. The biLM
    sees one text, as in the task's training, with sentence boundaries at its two ends only.

    Args:
        reader: the task's reader.
        source: of its items: files, or the public hub.
        dev_share: share of the training items that is cut off as dev, where a data set has no dev split; else None.
        fraction: share of the other training items that is used: the same ones as in the task with this seed.
        seed: of the fraction.
    """

    option = "task.lm.text"

    def __init__(
        self,
        *,
        reader: Reader[Any],
        source: Source,
        dev_share: float | None = None,
        fraction: float,
        seed: int,
    ) -> None:
        self.reader, self.dev_share, self.fraction, self.seed = reader, dev_share, fraction, seed
        self.source, self.digest = source, source.digest

    def shards(self, split: str) -> Iterator[list[list[str]]]:
        """Each token list by itself, in the order of the file: training shuffles sentences."""
        return ([text] for text in self._splits[split])

    @cached_property
    def _splits(self) -> dict[str, list[list[str]]]:
        items = read_splits(self.reader, self.source, self.dev_share, ("train", "dev"))
        items["train"] = take_fraction(items["train"], self.fraction, self.seed)
        return {split: self._texts(items[split]) for split in items}

    def _texts(self, items: list[Any]) -> list[list[str]]:
        """The distinct texts of some items (a SQuAD paragraph is one, whatever the number of its questions)."""
        texts = {id(text): text for item in items for text in self.reader.texts(item)}
        return [list(map(composed, text)) for text in texts.values() if text]
