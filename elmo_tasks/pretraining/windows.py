"""Windows over a pack: the same ones, position by position, as ``data/windows.py`` cuts from the text itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_tasks.data.windows import PADDED_CHARACTERS, LmBatch
from elmo_tasks.nn.characters import character_id_table
from elmo_tasks.pretraining.pack import BEGIN, END, Pack, sentence_table
from elmo_tasks.pretraining.pack_files import Ids

_WINDOWS_AT_ONCE = 32

Sentence = tuple[int, int, int]
"""Shard, first place in it, number of words."""


@dataclass(frozen=True)
class PackedWindow:
    """One window of S steps over B rows, as ids of the pack's words.

    Attributes:
        inputs: int32 ``[2, S, B]``, by reading direction.
        targets: int32 ``[2, S, B]``.
        valid: bool ``[S, B]``, False where a row has run out of text (only at the end of held-out text).
    """

    inputs: Ids
    targets: Ids
    valid: NDArray[np.bool_]

    def to_batch(self, pack: Pack, target_ids: Ids) -> LmBatch:
        """The batch that ``data/windows.py`` makes of the same text.

        Args:
            pack: whose ids these are.
            target_ids: the softmax's id of each of the pack's words.
        """
        distinct, rows = np.unique(self.inputs, return_inverse=True)
        return LmBatch(
            char_ids=character_id_table([pack.words[k] for k in distinct], extra=PADDED_CHARACTERS),
            words=torch.from_numpy(rows.reshape(self.inputs.shape).astype(np.int64)),
            targets=torch.from_numpy(target_ids[self.targets].astype(np.int64)),
            valid=torch.from_numpy(self.valid),
        )


def training_windows(pack: Pack, n_rows: int, n_steps: int, seed: int, epoch: int, skip: int) -> Iterator[PackedWindow]:
    """The windows of an epoch: the shards in a random order, then in another one, without end.

    Args:
        pack: the text.
        n_rows: rows B.
        n_steps: steps S.
        seed: of the order of the shards.
        epoch: from 0; each has an order of its own.
        skip: number of windows to skip.
    """
    rng = Random(f"{seed}-{epoch}")
    numbers = range(len(pack.shards["train"]))
    passes = (rng.sample(numbers, len(numbers)) for _ in count())
    sentences = chain.from_iterable(_sentences(pack, "train", order) for order in passes)
    return islice(cut_windows(pack, "train", sentences, n_rows, n_steps), skip, None)


def heldout_windows(pack: Pack, n_rows: int, n_steps: int) -> Iterator[PackedWindow]:
    """All of the held-out text, once."""
    order = range(len(pack.shards["heldout"]))
    return cut_windows(pack, "heldout", _sentences(pack, "heldout", order), n_rows, n_steps)


def _sentences(pack: Pack, split: str, order: range | list[int]) -> Iterator[Sentence]:
    for number in order:
        for start, length in sentence_table(pack.ends[split][number]):
            yield number, start, length


def cut_windows(
    pack: Pack, split: str, sentences: Iterator[Sentence], n_rows: int, n_steps: int
) -> Iterator[PackedWindow]:
    """Cut sentences into windows until no sentence is left; each is appended to the first row that lacks words.

    The sentences of several windows are laid out at once, in four tables with a line for each row.
    """
    ids = np.concatenate(pack.shards[split])
    offsets = np.cumsum([0, *map(len, pack.shards[split])]).tolist()
    n_columns = _WINDOWS_AT_ONCE * n_steps
    filled = [0] * n_rows  # positions of each row in the tables
    tables = np.empty((4, n_rows, 0), dtype=np.int32)
    while True:
        placed: list[tuple[int, int, int, int]] = []  # row, its position, first id, number of words
        for needed in range(n_steps, n_columns + 1, n_steps):
            for row in [row for row, n in enumerate(filled) if n < needed]:
                while filled[row] < needed and (sentence := next(sentences, None)) is not None:
                    shard, start, n_words = sentence
                    placed.append((row, filled[row], offsets[shard] + start, n_words))
                    filled[row] += n_words + 1
        width = max(n_columns, *filled)
        tables = np.pad(tables, ((0, 0), (0, 0), (0, width - tables.shape[2])), constant_values=END)
        _lay_out(tables, ids, placed)
        for first in range(0, n_columns, n_steps):
            lengths = np.array(filled) - first
            if (lengths <= 0).all():
                return
            window = tables[:, :, first : first + n_steps].transpose(0, 2, 1)
            valid = np.arange(n_steps)[:, None] < lengths
            yield PackedWindow(window[[0, 2]], window[[1, 3]], valid)
        tables = tables[:, :, n_columns:]
        filled = [max(0, n - n_columns) for n in filled]


def _lay_out(tables: Ids, ids: Ids, placed: list[tuple[int, int, int, int]]) -> None:
    """Write sentences into the tables: inputs and targets of the forward, then of the backward direction."""
    if not placed:
        return
    rows, positions, starts, lengths = np.array(placed, dtype=np.int64).T
    sizes = lengths + 1
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    start, last, row = (np.repeat(values, sizes) for values in (starts, starts + lengths, rows))
    column = np.repeat(positions, sizes) + within
    tables[0, row, column] = np.where(within == 0, BEGIN, ids[np.maximum(start + within - 1, 0)])
    tables[1, row, column] = ids[start + within]
    tables[2, row, column] = ids[last - within]
    tables[3, row, column] = np.where(start + within == last, BEGIN, ids[np.maximum(last - within - 1, 0)])
