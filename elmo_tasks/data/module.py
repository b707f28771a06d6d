"""The one data module of all tasks: splits, vocabulary, layers, batches by length."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader

from elmo_tasks.batch import Text
from elmo_tasks.bilm.chars import character_id_table
from elmo_tasks.bilm.store import Filled, LayerStore, TokenStore
from elmo_tasks.data.source import SPLITS, DocumentReader, Reader, open_source, share
from elmo_tasks.data.words import WordVectors
from elmo_tasks.errors import UserError
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
        batch_size: items of a batch at most.
        batch_tokens: padded tokens of a batch at most, which bounds the memory.
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
        batch_tokens: int,
        seed: int,
    ) -> None:
        super().__init__()
        if isinstance(reader, DocumentReader) and batch_size != 1:
            raise UserError(f"task.training.batch_size must be 1, a document, found {batch_size}")
        self.update_words = update_words or words.name == "random"
        self.reader, self.words, self.seed, self.fraction = reader, words, seed, fraction
        self.batch_size, self.batch_tokens = batch_size, batch_tokens
        self.source = open_source(sources, hub, root)
        self.digest = self.source.digest
        self.store: LayerStore | TokenStore | None = None

    def read(self) -> None:
        """Read all splits, cut the training set, build the vocabulary.

        Raises:
            UserError: for bad input, and for an item that exceeds ``batch_tokens`` by itself.
        """
        self.items = {split: self.source.read(self.reader, split) for split in self.source.splits}
        self._refuse_too_long()
        self.original = {split: len(items) for split, items in self.items.items()}
        self.items["train"] = share(self.items["train"], self.fraction, self.seed)
        tokens = {
            split: Counter(word for item in items for text in self.reader.texts(item) for word in text)
            for split, items in self.items.items()
        }
        self.vocabulary, self.matrix, self.coverage = self.words.embed(
            tokens["train"], [word for split in SPLITS[1:] for word in tokens.get(split, ())]
        )

    def _refuse_too_long(self) -> None:
        for split in self.items:
            longest = max(map(sum, self._lengths(split)))
            if longest > self.batch_tokens:
                raise UserError(
                    f"an item of the {split} split has {longest:,} tokens, more than a batch may have; "
                    f"leave it out, or set task.training.batch_tokens={longest} if the memory allows"
                )

    def use_layers(self, store: LayerStore | TokenStore | None, splits: Sequence[str]) -> Filled:
        """Take the biLM's layers from ``store``, which computes what it lacks of these splits."""
        self.store = store
        if store is None:
            return Filled()
        return store.fill([text for split in splits for item in self.items[split] for text in self.reader.texts(item)])

    def counts(self) -> dict[str, Any]:
        """How many items each split had and how many are used, for the row."""
        splits = {split: {"original": self.original[split], "used": len(items)} for split, items in self.items.items()}
        return {**splits, "left_out": dict(self.reader.left_out), "word_coverage": round(self.coverage, 4)}

    def model_parts(self) -> dict[str, Any]:
        """What the model must know of the data: the word embedding and the reader's label sets."""
        embedding = WordEmbedding(self.matrix.clone(), trainable=self.update_words)
        return {"words": embedding, **self.reader.model_parts(self.items["train"])}

    def train_dataloader(self) -> DataLoader[Any]:
        return self.epoch(self.trainer.current_epoch if self.trainer else 0)

    def epoch(self, number: int) -> DataLoader[Any]:
        """The training batches of one epoch: another order each epoch, the same for one seed."""
        chance = random.Random(f"{self.seed}-{number}")
        batches = self._shuffled(chance)
        items = self.items["train"]
        if isinstance(self.reader, DocumentReader):
            items = [self.reader.vary(item, chance) for item in items]
        return self._loader(items, batches)

    def val_dataloader(self) -> DataLoader[Any]:
        return self.batches("dev")

    def batches(self, split: str) -> DataLoader[Any]:
        """A split in order of length, for scoring."""
        lengths = self._lengths(split)
        return self._loader(self.items[split], self._cut(range(len(lengths)), lengths))

    def _shuffled(self, shuffler: random.Random) -> list[list[int]]:
        """Batches of similar length in a random order."""
        lengths = self._lengths("train")
        order = shuffler.sample(range(len(lengths)), len(lengths))
        pool = self.batch_size * _POOL
        batches = [
            batch for start in range(0, len(order), pool) for batch in self._cut(order[start : start + pool], lengths)
        ]
        shuffler.shuffle(batches)
        return batches

    def _cut(self, items: Sequence[int], lengths: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Some items in order of length, in batches within both bounds."""
        batches: list[list[int]] = []
        longest: tuple[int, ...] = ()
        for k in sorted(items, key=lambda k: sum(lengths[k])):
            longer = tuple(map(max, zip(longest, lengths[k], strict=True))) if longest else lengths[k]
            size = len(batches[-1]) + 1 if batches else 0
            if not batches or size > self.batch_size or size * sum(longer) > self.batch_tokens:
                batches.append([])
                longer = lengths[k]
            batches[-1].append(k)
            longest = longer
        return batches

    def _loader(self, items: list[Any], batches: list[list[int]]) -> DataLoader[Any]:
        own = torch.Generator()  # else each loader would draw from the model's random numbers
        return DataLoader(items, batch_sampler=batches, collate_fn=self.collate, generator=own)  # type: ignore[arg-type]

    def _lengths(self, split: str) -> list[tuple[int, ...]]:
        """The tokens of each text of each item; of a document one number, those of all its sentences padded."""
        lengths = [tuple(map(len, self.reader.texts(item))) for item in self.items[split]]
        return [(len(n) * max(n),) for n in lengths] if isinstance(self.reader, DocumentReader) else lengths

    def collate(self, items: list[Any]) -> Any:
        """The task's batch of some items."""
        if isinstance(self.reader, DocumentReader):
            (item,) = items
            return self.reader.collate(items, [self.text(self.reader.texts(item))])
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
