"""Windows over a stream of sentences for training a biLM, both reading directions at once."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_only
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset
from tqdm import tqdm

from elmo_tasks.batch import OnDevice
from elmo_tasks.bilm.chars import BEGIN_SENTENCE, END_SENTENCE, character_id_table, remark_on_cut
from elmo_tasks.data.corpus import LmText, LmVocabulary, Shards, count_words
from elmo_tasks.errors import UserError

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

    def windows(
        self, sentences: Iterator[list[str]], skip: int = 0, rows_wanted: slice = slice(None)
    ) -> Iterator[LmBatch]:
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
                yield self._window(cuts[rows_wanted])

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


@rank_zero_only
def _announce(remark: str) -> None:
    if remark:
        tqdm.write(f"text: {remark}")


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
    """Windows of a split: once in order, or for ever, in another order each time."""

    def __init__(self, data: LmData, split: str, for_ever: bool, rows: slice) -> None:
        self.data, self.split, self.for_ever, self.rows = data, split, for_ever, rows

    def __iter__(self) -> Iterator[LmBatch]:
        if not self.for_ever:
            yield from self.data.windows(self.data.text.sentences(self.split), rows_wanted=self.rows)
            return
        epoch, done = self.data.progress()  # now: an iterator is made before the trainer has its state back
        chance = random.Random(f"{self.data.seed}-{epoch}")
        passes = (self.data.text.sentences(self.split, chance) for _ in count())
        yield from self.data.windows(chain.from_iterable(passes), skip=done, rows_wanted=self.rows)
