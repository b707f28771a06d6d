"""The one data module of all tasks: splits, vocabulary, layers, batches by length."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

from elmo_tasks.batch import Text
from elmo_tasks.bilm.chars import character_id_table
from elmo_tasks.bilm.store import Filled, LayerStore, TokenStore
from elmo_tasks.data.source import SPLITS, Files, Hub, Reader
from elmo_tasks.data.words import WordVectors
from elmo_tasks.nn.embedding import WordEmbedding

_POOL = 50  # batches that are sorted by length together


class TaskData(pl.LightningDataModule):
    """Reads a task's splits and makes batches of them.

    Args:
        reader: the task's reader.
        sources: for files, the path of each split below ``root``; for the hub, ``id`` and split names.
        hub: whether the items come from the public hub.
        root: folder of the files; None for the hub.
        fraction: share of the training items that is used; the same ones for a given seed.
        words: where the word vectors come from.
        update_words: train the word vectors too (random ones always are).
        batch_size: items of a training batch.
        seed: of the fraction and of the order of batches.
    """

    def __init__(
        self,
        *,
        reader: Reader,
        sources: Mapping[str, Any],
        hub: bool,
        root: str | None,
        fraction: float,
        words: WordVectors,
        update_words: bool,
        batch_size: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.update_words = update_words or words.name == "random"
        self.reader, self.words, self.batch_size, self.seed, self.fraction = reader, words, batch_size, seed, fraction
        self.source = Hub(**sources) if hub else Files(root, sources)
        self.digest = self.source.digest
        self.store: LayerStore | TokenStore | None = None

    def read(self) -> None:
        """Read all splits, cut the training set, build the vocabulary."""
        self.items = {split: self.source.read(self.reader, split) for split in SPLITS}
        self.original = {split: len(items) for split, items in self.items.items()}
        if self.fraction < 1:
            train = self.items["train"]
            kept = sorted(random.Random(self.seed).sample(range(len(train)), max(1, round(len(train) * self.fraction))))
            self.items["train"] = [train[k] for k in kept]
        tokens = {
            split: Counter(word for item in items for text in self.reader.texts(item) for word in text)
            for split, items in self.items.items()
        }
        self.vocabulary, self.matrix, self.coverage = self.words.embed(
            tokens["train"], [*tokens["dev"], *tokens["test"]]
        )

    def use_layers(self, store: LayerStore | TokenStore | None, splits: Sequence[str]) -> Filled:
        """Take the biLM's layers from ``store``, which computes what it lacks of these splits."""
        self.store = store
        if store is None:
            return Filled()
        return store.fill([text for split in splits for item in self.items[split] for text in self.reader.texts(item)])

    def counts(self) -> dict[str, Any]:
        """How many items each split had and how many are used, for the row."""
        splits = {split: {"original": self.original[split], "used": len(self.items[split])} for split in SPLITS}
        return {**splits, "left_out": dict(self.reader.left_out), "word_coverage": round(self.coverage, 4)}

    def model_parts(self) -> dict[str, Any]:
        """What the model must know of the data: the word embedding and the reader's label sets."""
        embedding = WordEmbedding(self.matrix.clone(), trainable=self.update_words)
        return {"words": embedding, **self.reader.model_parts(self.items["train"])}

    @property
    def steps_per_epoch(self) -> int:
        """Training batches of one epoch."""
        return -(-len(self.items["train"]) // self.batch_size)

    def train_dataloader(self) -> DataLoader[Any]:
        return self._loader("train", _Buckets(self._lengths("train"), self.batch_size, self.seed))

    def val_dataloader(self) -> DataLoader[Any]:
        return self.batches("dev")

    def batches(self, split: str) -> DataLoader[Any]:
        """A split in order of length, for scoring."""
        lengths = self._lengths(split)
        order = sorted(range(len(lengths)), key=lambda k: lengths[k])
        cuts = [order[k : k + self.batch_size] for k in range(0, len(order), self.batch_size)]
        return self._loader(split, cuts)

    def _loader(self, split: str, batches: Any) -> DataLoader[Any]:
        return DataLoader(self.items[split], batch_sampler=batches, collate_fn=self.collate)  # type: ignore[arg-type]

    def _lengths(self, split: str) -> list[int]:
        return [sum(map(len, self.reader.texts(item))) for item in self.items[split]]

    def collate(self, items: list[Any]) -> Any:
        """The task's batch of some items."""
        parts = zip(*(self.reader.texts(item) for item in items), strict=True)
        return self.reader.collate(items, [self.text(list(tokens)) for tokens in parts])

    def text(self, tokens: list[list[str]]) -> Text:
        """Ids, mask and layers of some token lists."""
        lengths = torch.tensor([len(t) for t in tokens])
        n_tokens = int(lengths.max())
        mask = torch.arange(n_tokens) < lengths.unsqueeze(1)
        word_ids = torch.zeros(mask.shape, dtype=torch.long)
        word_ids[mask] = torch.tensor([self.vocabulary[word] for t in tokens for word in t])
        distinct = {word: k for k, word in enumerate(dict.fromkeys(word for t in tokens for word in t))}
        table = character_id_table(list(distinct))
        char_ids = torch.zeros(*mask.shape, table.shape[1], dtype=torch.long)
        char_ids[mask] = table[torch.tensor([distinct[word] for t in tokens for word in t])]
        layers = None if self.store is None else self.store.padded(tokens)
        return Text(tokens, word_ids, char_ids, mask, layers)


class _Buckets:
    """Batches of similar length in a random order, another one each epoch, the same for one seed."""

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int) -> None:
        self.lengths, self.batch_size, self.seed, self.epoch = lengths, batch_size, seed, 0

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        shuffler = random.Random(f"{self.seed}-{self.epoch}")
        self.epoch += 1
        order = shuffler.sample(range(len(self.lengths)), len(self.lengths))
        size, pool = self.batch_size, self.batch_size * _POOL
        batches = []
        for start in range(0, len(order), pool):
            near = sorted(order[start : start + pool], key=lambda k: self.lengths[k])
            batches += [near[k : k + size] for k in range(0, len(near), size)]
        shuffler.shuffle(batches)
        yield from batches
