"""A task's sentences as text for a language model: what its reader gives, the labels ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from random import Random
from typing import Any

from elmo_tasks.bilm.chars import composed
from elmo_tasks.data.source import Reader, open_source, share


class TaskText:
    """The token lists of a task's training and dev items, each as often as it stands in the files, composed (NFC).

    What several items share (a SQuAD paragraph and its questions) is read once; it is one text to the biLM here, with
    marks at its ends only, as it is when the task is trained.

    Args:
        reader: the task's reader.
        sources: for files, the path of each split below ``root``; for the hub, ``id`` and split names.
        hub: whether the items come from the public hub.
        root: folder of the files; None for the hub.
        fraction: share of the training items that is used; those that the task would use with this seed.
        seed: of the fraction.
    """

    option = "task.lm.text"

    def __init__(
        self, *, reader: Reader, sources: Mapping[str, Any], hub: bool, root: str | None, fraction: float, seed: int
    ) -> None:
        self.reader, self.fraction, self.seed = reader, fraction, seed
        self.source = open_source(sources, hub, root)
        self.digest = self.source.digest

    def sentences(self, split: str, chance: Random | None = None) -> Iterator[list[str]]:
        """Token lists in the order of the file, or in a random one."""
        texts = self._splits[split]
        return iter(chance.sample(texts, len(texts)) if chance else texts)

    @cached_property
    def _splits(self) -> dict[str, list[list[str]]]:
        return {split: self._read(split) for split in ("train", "dev")}

    def _read(self, split: str) -> list[list[str]]:
        items = self.source.read(self.reader, split)
        if split == "train":
            items = share(items, self.fraction, self.seed)
        texts = {id(text): text for item in items for text in self.reader.texts(item)}
        return [list(map(composed, text)) for text in texts.values() if text]
