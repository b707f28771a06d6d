"""The text that a biLM is trained on, as Lightning takes it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, count

import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_only
from torch.utils.data import DataLoader, IterableDataset
from tqdm import tqdm

from elmo_tasks.bilm.chars import remark_on_cut
from elmo_tasks.data.corpus import LmText, LmVocabulary, Shards, count_words
from elmo_tasks.data.windows import LmBatch, cut_windows
from elmo_tasks.errors import UserError


class LmData(pl.LightningDataModule):
    """A text cut into windows, without padding: the rows are streams of whole sentences.

    Where several processes train, each reads all of the text and takes its share of every window's rows, so that
    together they see what one process would.

    Args:
        text: the sentences.
        batch_size: rows B of all processes together.
        window: steps S of a window (20 in the paper's code); the biLM's state is carried from window to window.
        vocabulary_size: cap on the words that the softmax predicts, the three marks counted.
        min_count: rarer words count as ``<UNK>``.
        seed: order of the text, anew each epoch.
        vocabulary: of the model that training starts from; None takes the most frequent words of the text.
    """

    def __init__(
        self,
        *,
        text: LmText,
        batch_size: int,
        window: int,
        vocabulary_size: int,
        min_count: int,
        seed: int,
        vocabulary: LmVocabulary | None = None,
    ) -> None:
        super().__init__()
        self.text, self.digest = text, text.digest
        self.batch_size, self.window, self.seed = batch_size, window, seed
        self.vocabulary_size, self.min_count = vocabulary_size, min_count
        self.given = vocabulary

    def read(self) -> None:
        """Read all text once: see that there is enough of it, count its words and tell which ones lose their end.

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
        self.vocabulary = self.given or LmVocabulary.of(words, self.vocabulary_size, self.min_count)
        _announce(remark_on_cut(chain(words, heldout)))
        self.unknown = 1 - sum(n for word, n in words.items() if word in self.vocabulary.ids) / words.total()

    def _files(self, split: str) -> str:
        """Which files a split is read from, in brackets, if it is of files of its own."""
        if not isinstance(self.text, Shards):
            return ""
        first, *more = self.text.paths[split]
        return f" ({first}{f' and {len(more)} more' if more else ''})"

    def counts(self) -> dict[str, object]:
        """What there is to train on, for the row; ``unknown`` is the share of the training tokens."""
        positions = {"train": {"positions": self.n_positions}, "dev": {"positions": self.n_heldout}}
        return {**positions, "vocabulary": len(self.vocabulary), "unknown": round(self.unknown, 4)}

    def model_parts(self) -> dict[str, object]:
        """What the model must know of the data."""
        return {"vocabulary_size": len(self.vocabulary)}

    @property
    def steps_per_epoch(self) -> int:
        """Whole windows of one pass over the training text."""
        return self.n_positions // (self.batch_size * self.window)

    def train_dataloader(self) -> DataLoader[LmBatch]:
        return self._loader("train", for_ever=True, rows=self._own_rows())

    def val_dataloader(self) -> DataLoader[LmBatch]:
        return self._loader("dev", for_ever=False, rows=self._own_rows())

    def batches(self, split: str) -> DataLoader[LmBatch]:
        """A split once, all rows of it."""
        return self._loader(split, for_ever=False, rows=slice(None))

    def _own_rows(self) -> slice:
        """The share of this process."""
        if self.trainer is None:
            return slice(None)
        n = self.batch_size // self.trainer.world_size
        return slice(self.trainer.global_rank * n, (self.trainer.global_rank + 1) * n)

    def _loader(self, split: str, *, for_ever: bool, rows: slice) -> DataLoader[LmBatch]:
        own = torch.Generator()  # else the loader would draw from the model's random numbers
        return DataLoader(_Windows(self, split, for_ever, rows), batch_size=None, generator=own)

    def progress(self) -> tuple[int, int]:
        """The epoch that begins or, if a run is taken up again, goes on, and the windows of it that are done."""
        if self.trainer is None:
            return 0, 0
        loop = self.trainer.fit_loop  # trainer.current_epoch lags behind where a run is taken up at an epoch's end
        done = loop.epoch_loop.batch_progress.current.ready
        n_epochs: int = loop.epoch_progress.current.processed  # type: ignore[attr-defined]
        return n_epochs, done if done < self.steps_per_epoch else 0

    def cut(self, sentences: Iterator[list[str]], wanted: slice, skip: int = 0) -> Iterator[LmBatch]:
        """Windows of sentences, with the wanted rows of each; the first ``skip`` are passed over."""
        return cut_windows(sentences, self.batch_size, self.window, self.vocabulary, wanted, skip)


@rank_zero_only
def _announce(remark: str) -> None:
    if remark:
        tqdm.write(f"text: {remark}")


class _Windows(IterableDataset[LmBatch]):
    """Windows of a split: once in order, or for ever, in another order each time."""

    def __init__(self, data: LmData, split: str, for_ever: bool, rows: slice) -> None:
        self.data, self.split, self.for_ever, self.rows = data, split, for_ever, rows

    def __iter__(self) -> Iterator[LmBatch]:
        if not self.for_ever:
            yield from self.data.cut(self.data.text.sentences(self.split), self.rows)
            return
        epoch, done = self.data.progress()  # now: an iterator is made before the trainer has its state back
        chance = random.Random(f"{self.data.seed}-{epoch}")
        passes = (self.data.text.sentences(self.split, chance) for _ in count())
        yield from self.data.cut(chain.from_iterable(passes), self.rows, skip=done)
