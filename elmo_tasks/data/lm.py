"""Windows over a stream of sentences for training a biLM, both reading directions at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from elmo_tasks.batch import OnDevice
from elmo_tasks.bilm.chars import BEGIN_SENTENCE, END_SENTENCE, character_id_table
from elmo_tasks.data.corpus import LmVocabulary, find_shards, read_sentences
from elmo_tasks.data.source import digest_files

_FILLING = 7  # characters behind the longest word: the width of the widest filter


@dataclass
class LmBatch(OnDevice):
    """One window of S steps over B rows of text.

    Attributes:
        char_ids: long ``[W, C]``, the characters of the window's distinct words.
        words: long ``[2, S, B]``, rows of ``char_ids``, by reading direction.
        targets: long ``[2, S, B]``, the vocabulary id of the word to predict.
        real: bool ``[S, B]``, False where a row has run out of text (only at the end of held-out text).
        gold: the targets again, for the metric's signature.
    """

    char_ids: Tensor
    words: Tensor
    targets: Tensor
    real: Tensor

    @property
    def gold(self) -> Tensor:
        return self.targets


class LmData(pl.LightningDataModule):
    """A corpus cut into windows, without padding: the rows are streams of whole sentences.

    Args:
        root: folder of the text.
        train: file pattern of the training shards, below ``root``.
        heldout: file pattern of the held-out text.
        batch_size: rows B.
        window: steps S of a window (20 in the paper's code); the biLM's state is carried from window to window.
        vocabulary_size: cap on the words that the softmax predicts, the three marks counted.
        min_count: rarer words count as ``<UNK>``.
        seed: order of the shards, anew each epoch.
    """

    def __init__(
        self,
        *,
        root: str,
        train: str,
        heldout: str,
        batch_size: int,
        window: int,
        vocabulary_size: int,
        min_count: int,
        seed: int,
    ) -> None:
        super().__init__()
        self.train_shards = find_shards(root, train, "lm.train")
        self.heldout_shards = find_shards(root, heldout, "lm.heldout")
        self.batch_size, self.window, self.seed = batch_size, window, seed
        self.vocabulary_size, self.min_count = vocabulary_size, min_count
        self.digest = digest_files([*self.train_shards, *self.heldout_shards])

    def read(self) -> None:
        """Count the words of the training text, once."""
        self.vocabulary, self.n_positions = LmVocabulary.count(self.train_shards, self.vocabulary_size, self.min_count)

    def counts(self) -> dict[str, object]:
        """What there is to train on, for the row."""
        return {"train": {"positions": self.n_positions}, "vocabulary": len(self.vocabulary)}

    def model_parts(self) -> dict[str, object]:
        """What the model must know of the data."""
        return {"vocabulary_size": len(self.vocabulary)}

    def export(self, model: Any, folder: Path) -> None:
        """Write the trained biLM in the official layout, and its vocabulary, a word a line."""
        model.bilm.save(folder, dtype="float16")
        (folder / "vocabulary.txt").write_text("\n".join(self.vocabulary.words) + "\n", "utf-8")

    @property
    def steps_per_epoch(self) -> int:
        """Whole windows of one pass over the training text."""
        return max(1, self.n_positions // (self.batch_size * self.window))

    def train_dataloader(self) -> DataLoader[LmBatch]:
        return DataLoader(
            _Windows(self, self.train_shards, seed=self.seed), batch_size=None, generator=torch.Generator()
        )

    def val_dataloader(self) -> DataLoader[LmBatch]:
        return self.batches("dev")

    def batches(self, split: str) -> DataLoader[LmBatch]:
        """The held-out text, whichever split is asked for."""
        return self._loader(self.heldout_shards, None)

    def _loader(self, shards: Sequence[Path], seed: int | None) -> DataLoader[LmBatch]:
        own = torch.Generator()  # else the loader would draw from the model's random numbers
        return DataLoader(_Windows(self, shards, seed), batch_size=None, generator=own)

    def progress(self) -> tuple[int, int]:
        """The epoch that begins or, if a run is taken up again, goes on, and the windows of it that are done."""
        if self.trainer is None:
            return 0, 0
        done = self.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        return self.trainer.current_epoch, done if done < self.steps_per_epoch else 0

    def windows(self, sentences: Iterator[list[str]], skip: int = 0) -> Iterator[LmBatch]:
        """Cut sentences into windows until there are none left; the first ``skip`` are passed over."""
        rows = [_Row() for _ in range(self.batch_size)]
        exhausted = False
        for number in count():
            for row in rows:
                while len(row) < self.window and not exhausted:
                    sentence = next(sentences, None)
                    exhausted = sentence is None
                    if sentence is not None:
                        row.append(sentence)
            if not any(rows):
                return
            cuts = [row.take(self.window) for row in rows]
            if number >= skip:
                yield self._window(cuts)

    def _window(self, cuts: Sequence[tuple[list[str], list[str], list[str], list[str]]]) -> LmBatch:
        n_steps = self.window
        fill = [[words + [END_SENTENCE] * (n_steps - len(words)) for words in cut] for cut in cuts]
        inputs = [w for direction in (0, 2) for cut in fill for w in cut[direction]]
        targets = [w for direction in (1, 3) for cut in fill for w in cut[direction]]
        distinct = {word: k for k, word in enumerate(dict.fromkeys(inputs))}
        shape = (2, len(cuts), n_steps)

        def steps_first(ids: list[int]) -> Tensor:
            return torch.from_numpy(np.array(ids, dtype=np.int64).reshape(shape)).transpose(1, 2).contiguous()

        lengths = torch.tensor([len(cut[0]) for cut in cuts])
        return LmBatch(
            char_ids=character_id_table(list(distinct), extra=_FILLING),
            words=steps_first([distinct[w] for w in inputs]),
            targets=steps_first([self.vocabulary[w] for w in targets]),
            real=torch.arange(n_steps).unsqueeze(1) < lengths,
        )


class _Row:
    """The text waiting in one row: inputs and targets of the forward and of the backward direction."""

    def __init__(self) -> None:
        self.parts: tuple[list[str], list[str], list[str], list[str]] = ([], [], [], [])

    def __len__(self) -> int:
        return len(self.parts[0])

    def append(self, sentence: list[str]) -> None:
        forward = [BEGIN_SENTENCE, *sentence, END_SENTENCE]
        backward = forward[::-1]
        for part, words in zip(self.parts, (forward[:-1], forward[1:], backward[:-1], backward[1:]), strict=True):
            part.extend(words)

    def take(self, n: int) -> tuple[list[str], list[str], list[str], list[str]]:
        cut = tuple(part[:n] for part in self.parts)
        self.parts = tuple(part[n:] for part in self.parts)  # type: ignore[assignment]
        return cut  # type: ignore[return-value]


class _Windows(IterableDataset[LmBatch]):
    """Windows of some shards: once in order (``seed=None``), or for ever, in another order of shards each time."""

    def __init__(self, data: LmData, shards: Sequence[Path], seed: int | None) -> None:
        self.data, self.shards, self.seed = data, shards, seed

    def __iter__(self) -> Iterator[LmBatch]:
        if self.seed is None:
            return self.data.windows(chain.from_iterable(map(read_sentences, self.shards)))
        epoch, done = self.data.progress()
        return self.data.windows(self._for_ever(random.Random(f"{self.seed}-{epoch}")), skip=done)

    def _for_ever(self, chance: random.Random) -> Iterator[list[str]]:
        while True:
            yield from chain.from_iterable(map(read_sentences, chance.sample(self.shards, len(self.shards))))
