"""The text that a biLM is trained on, as a Lightning data module."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, count
from typing import Annotated

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_only
from torch.utils.data import DataLoader, IterableDataset

from elmo_tasks.data.corpus import LmText, LmVocabulary, TextFiles, count_words
from elmo_tasks.data.windows import LmBatch, cut_windows
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import remark_on_truncated
from elmo_tasks.progress import say
from elmo_tasks.values import Range, Size


class LmData(pl.LightningDataModule):
    """A text cut into windows, without padding: the rows are streams of whole sentences.

    Where several processes train, each reads all of the text and takes its share of every window's rows, so that
    together they see what one process would.

    Args:
        text: the sentences.
        batch_size: rows B of all processes together.
        window: steps S of a window (20 in the paper's code); the biLM's state is carried from window to window.
        vocabulary_size: maximum number of words that the softmax predicts, including the three special tokens.
        min_count: rarer words count as ``<UNK>``.
        seed: of the shuffling, together with the epoch's number.
        vocabulary: of the model that training starts from; None takes the most frequent words of the text.
    """

    def __init__(
        self,
        *,
        text: LmText,
        batch_size: Size,
        window: Size,
        vocabulary_size: Annotated[int, Range(4)],
        min_count: Size,
        seed: int,
        vocabulary: LmVocabulary | None = None,
    ) -> None:
        super().__init__()
        self.text, self.digest = text, text.digest
        self.batch_size, self.window, self.seed = batch_size, window, seed
        self.vocabulary_size, self.min_count = vocabulary_size, min_count
        self.given = vocabulary

    def read(self) -> None:
        """Read all text once: check that there is enough of it, count its words and report which ones are truncated.

        Raises:
            UserError: naming file and line of bad text, or if the text does not fill a window.
        """
        words, self.n_positions = count_words(self.text.sentences("train"))
        heldout, self.n_heldout = count_words(self.text.sentences("dev"))
        if self.n_positions < self.batch_size * self.window:
            raise UserError(
                f"the training text{self._files('train')} has {self.n_positions:,} positions, but one window of "
                f"task.data.batch_size={self.batch_size} rows and task.data.window={self.window} steps takes "
                f"{self.batch_size * self.window:,}; set a smaller one, or {self.text.option} to more text"
            )
        if not self.n_heldout:
            raise UserError(
                f"there is no sentence in the held-out text{self._files('dev')}; set {self.text.option} to some"
            )
        self.vocabulary = self.given or LmVocabulary.from_counts(words, self.vocabulary_size, self.min_count)
        _announce(remark_on_truncated(chain(words, heldout)))
        self.unknown = 1 - sum(n for word, n in words.items() if word in self.vocabulary.ids) / words.total()

    def _files(self, split: str) -> str:
        """The files of a split, in brackets; empty where a split has no files of its own."""
        if not isinstance(self.text, TextFiles):
            return ""
        first, *more = self.text.paths[split]
        return f" ({first}{f' and {len(more)} more' if more else ''})"

    def counts(self) -> dict[str, object]:
        """The size of the text, for the row; ``unknown`` is the share of training tokens outside the vocabulary."""
        positions = {"train": {"positions": self.n_positions}, "dev": {"positions": self.n_heldout}}
        return {**positions, "vocabulary": len(self.vocabulary), "unknown": round(self.unknown, 4)}

    def model_parts(self) -> dict[str, object]:
        """Arguments of the model that depend on the data."""
        return {"vocabulary_size": len(self.vocabulary)}

    @property
    def steps_per_epoch(self) -> int:
        """Whole windows of one pass over the training text."""
        return self.n_positions // (self.batch_size * self.window)

    def train_dataloader(self) -> DataLoader[LmBatch]:
        return self._loader("train", endless=True, rows=self._own_rows())

    def val_dataloader(self) -> DataLoader[LmBatch]:
        return self._loader("dev", endless=False, rows=self._own_rows())

    def batches(self, split: str) -> DataLoader[LmBatch]:
        """All rows of a split, in one pass."""
        return self._loader(split, endless=False, rows=slice(None))

    def _own_rows(self) -> slice:
        """The rows of this process."""
        if self.trainer is None:
            return slice(None)
        n = self.batch_size // self.trainer.world_size
        return slice(self.trainer.global_rank * n, (self.trainer.global_rank + 1) * n)

    def _loader(self, split: str, *, endless: bool, rows: slice) -> DataLoader[LmBatch]:
        own = torch.Generator()  # otherwise the loader would draw from the global generator, which the model uses
        return DataLoader(_Windows(self, split, endless, rows), batch_size=None, generator=own)

    def progress(self) -> tuple[int, int]:
        """The current epoch, and how many of its windows are done (more than 0 if a run was resumed within it)."""
        if self.trainer is None:
            return 0, 0
        loop = self.trainer.fit_loop  # trainer.current_epoch is too low after resuming at the end of an epoch
        done = loop.epoch_loop.batch_progress.current.ready
        n_epochs: int = loop.epoch_progress.current.processed  # type: ignore[attr-defined]
        return n_epochs, done if done < self.steps_per_epoch else 0

    def cut(self, sentences: Iterator[list[str]], wanted: slice, skip: int = 0) -> Iterator[LmBatch]:
        """Windows of sentences, with the wanted rows of each; the first ``skip`` windows are left out."""
        return cut_windows(sentences, self.batch_size, self.window, self.vocabulary, wanted, skip)


@rank_zero_only
def _announce(remark: str) -> None:
    if remark:
        say(f"text: {remark}")


class _Windows(IterableDataset[LmBatch]):
    """Windows of a split: one pass in order, or endless passes, each in another order."""

    def __init__(self, data: LmData, split: str, endless: bool, rows: slice) -> None:
        self.data, self.split, self.endless, self.rows = data, split, endless, rows

    def __iter__(self) -> Iterator[LmBatch]:
        if not self.endless:
            yield from self.data.cut(self.data.text.sentences(self.split), self.rows)
            return
        # not in __init__: the data set is created before the trainer has restored its state
        epoch, done = self.data.progress()
        rng = random.Random(f"{self.data.seed}-{epoch}")
        passes = (self.data.text.sentences(self.split, rng) for _ in count())
        yield from self.data.cut(chain.from_iterable(passes), self.rows, skip=done)
