"""The data module of all supervised tasks: splits, vocabulary, layers, and batches of similar length."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytorch_lightning as pl
from torch import Generator, nn
from torch.utils.data import DataLoader

from elmo_tasks.data.batching import check_length, item_lengths, make_batches
from elmo_tasks.data.fitted import FittedData
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.sharing import Placeholder, process_rows
from elmo_tasks.data.source import Source
from elmo_tasks.data.splits import check_dev, read_splits, take_fraction
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import composed
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.store.store import Filled, Store
from elmo_tasks.values import is_all

_POOL = 50  # batches that are sorted by length together


class TaskData(pl.LightningDataModule):
    """Reads a task's splits and makes batches of them.

    Args:
        reader: the task's reader.
        source: of its items: files, or the public hub.
        dev_share: share of the training items that is cut off as dev, where a data set has no dev split; else None.
        fraction: share of the other training items that is used; the same ones for a given seed.
        words: where the word vectors come from.
        update_words: train the word vectors too (random ones always are).
        batch_size: items of a batch at most.
        batch_tokens: padded tokens of a batch at most, which bounds the memory.
        seed: of the fraction and of the order of batches.

    Raises:
        UserError: if a batch of documents has more than one, or there is no dev set, or two.
    """

    def __init__(
        self,
        *,
        reader: Reader[Any],
        source: Source,
        dev_share: float | None = None,
        fraction: float,
        words: WordVectors,
        update_words: bool,
        batch_size: int,
        batch_tokens: int,
        seed: int,
    ) -> None:
        super().__init__()
        if reader.documents and batch_size != 1:
            raise UserError(f"task.training.batch_size must be 1, since a batch is one document, found {batch_size}")
        self.update_words = update_words or words.name == "random"
        self.reader, self.words, self.seed, self.fraction = reader, words, seed, fraction
        self.batch_size, self.batch_tokens = batch_size, batch_tokens
        check_dev(source, dev_share)
        self.source, self.dev_share = source, dev_share
        self.digest, self.test_digest = source.digest, source.test_digest
        self.store: Store | None = None

    def read(self) -> None:
        """Read all splits, fit the reader, take a fraction of the training set, build the vocabulary.

        Raises:
            UserError: for bad input, and naming the longest item if it exceeds ``batch_tokens`` by itself.
        """
        self.items = read_splits(self.reader, self.source, self.dev_share)
        self.source.check_unchanged()
        self._refuse_too_long()
        self.original = {split: len(items) for split, items in self.items.items()}
        # of an epoch of the whole set, which an epoch of a share has too; 0 for the whole set itself
        self._n_updates = len(self._shuffled(random.Random(0))) if self.fraction < 1 else 0
        self.items["train"] = take_fraction(self.items["train"], self.fraction, self.seed)
        vocabulary, matrix, self.coverage = self.words.embed(self._count_words("train"), self._count_words("dev"))
        self.fitted = FittedData(self.reader, vocabulary, matrix, update_words=self.update_words)

    def _count_words(self, split: str) -> Counter[str]:
        texts = (text for item in self.items.get(split, ()) for text in self.reader.texts(item))
        return Counter(composed(word) for text in texts for word in text)

    def add_words(self, split: str, models: Sequence[nn.Module]) -> None:
        """Give the words of a split that is to be scored their vectors (see :meth:`FittedData.add_words`)."""
        self.fitted.add_words(self._count_words(split), self.words, models)

    def _refuse_too_long(self) -> None:
        n_tokens, split = max((max(map(sum, self._lengths(split))), split) for split in self.items)
        check_length(self.reader, n_tokens, self.batch_tokens, f"an item of the {split} split")

    def use_layers(self, store: Store | None, splits: Sequence[str]) -> Filled:
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
        return self.fitted.model_parts()

    def train_dataloader(self) -> DataLoader[Any]:
        return self.epoch(self.trainer.current_epoch if self.trainer else 0)

    def epoch(self, number: int) -> DataLoader[Any]:
        """The training batches of one epoch: another order each epoch, the same for one seed.

        A share of the training set is repeated until there are as many updates as in an epoch of the whole set. So
        budgets, patience and schedules, which count epochs, are the same number of updates at every share.
        """
        rng = random.Random(f"{self.seed}-{number}")
        train = self.items["train"]
        items: list[Any] = []
        batches: list[list[int]] = []
        while not batches or len(batches) < self._n_updates:
            batches += [[len(items) + k for k in batch] for batch in self._shuffled(rng)]
            items += [self.reader.vary(item, rng) for item in train]
        items, batches = self._own_rows(items, batches[: self._n_updates or None])
        return self._loader(items, _Batches(batches, self._n_done))

    def val_dataloader(self) -> DataLoader[Any]:
        """The dev set; of several processes, each has some rows of each batch.

        The batches are in order of length. If training scores only the first of them (``trainer.limit_val_batches``),
        they are in a fixed random order, so that these are of all lengths.
        """
        batches = self._by_length("dev")
        if self.trainer is not None and not is_all(self.trainer.limit_val_batches):
            random.Random(0).shuffle(batches)
        return self._loader(*self._own_rows(self.items["dev"], batches))

    def batches(self, split: str) -> DataLoader[Any]:
        """A split in order of length, for scoring by one process."""
        return self._loader(self.items[split], self._by_length(split))

    def _by_length(self, split: str) -> list[list[int]]:
        lengths = self._lengths(split)
        return self._cut(range(len(lengths)), lengths)

    def _own_rows(self, items: list[Any], batches: list[list[int]]) -> tuple[list[Any], list[list[int]]]:
        """Of several processes that train together, the part of this one."""
        if self.trainer is None or self.trainer.world_size == 1:
            return items, batches
        return process_rows(items, batches, n=self.trainer.world_size, rank=self.trainer.global_rank)

    def _shuffled(self, rng: random.Random) -> list[list[int]]:
        """Batches of similar length in a random order."""
        lengths = self._lengths("train")
        order = rng.sample(range(len(lengths)), len(lengths))
        pool = self.batch_size * _POOL
        batches = [
            batch for start in range(0, len(order), pool) for batch in self._cut(order[start : start + pool], lengths)
        ]
        rng.shuffle(batches)
        return batches

    def _cut(self, items: Sequence[int], lengths: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Batches of some items in order of length, within both bounds."""
        return make_batches(items, lengths, batch_size=self.batch_size, batch_tokens=self.batch_tokens)

    def _n_done(self) -> int:
        """Batches of this epoch that were done before the run was interrupted."""
        return self.trainer.fit_loop.epoch_loop.batch_progress.current.ready if self.trainer else 0

    def _loader(self, items: list[Any], batches: Sequence[list[int]] | _Batches) -> DataLoader[Any]:
        return DataLoader(
            items,  # type: ignore[arg-type]
            batch_sampler=batches,
            collate_fn=self.collate,
            generator=Generator(),  # its own: else each loader would draw from the model's random numbers
        )

    def _lengths(self, split: str) -> list[tuple[int, ...]]:
        return [item_lengths(self.reader, item) for item in self.items[split]]

    def collate(self, items: list[Any]) -> Any:
        """The task's batch of some items."""
        if isinstance(items[0], Placeholder):
            batch = self.fitted.collate([items[0].item], self.store)
            batch.is_placeholder = True
            return batch
        return self.fitted.collate(items, self.store)


class _Batches:
    """Batches of item numbers; a run that is resumed within an epoch continues after those that are done.

    Args:
        batches: of the whole epoch.
        n_done: called when the first batch is needed: the iterator is made before the trainer restores its state.
    """

    def __init__(self, batches: list[list[int]], n_done: Callable[[], int]) -> None:
        self.batches, self.n_done = batches, n_done

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        n_done = self.n_done()
        yield from self.batches[n_done if n_done < len(self.batches) else 0 :]
