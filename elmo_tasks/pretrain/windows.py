"""Windows over a text, both reading directions at once, without padding: the rows are streams of whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.pretrain.pack import BEGIN, END, EncodedText
from elmo_tasks.pretrain.pack_files import Ids

_WINDOWS_AT_ONCE = 32


@dataclass(frozen=True)
class PackedWindow:
    """One window of S steps over B rows, as ids of the pack's words.

    Attributes:
        inputs: int32 ``[2, S, B]``, by reading direction.
        targets: int32 ``[2, S, B]``, the next word of each input.
        valid: bool ``[S, B]``, False where a row has run out of text (only at the end of held-out text).
    """

    inputs: Ids
    targets: Ids
    valid: NDArray[np.bool_]

    def of_rows(self, rows: slice) -> PackedWindow:
        """The same window with some of its rows."""
        return replace(self, **{name: part[..., rows] for name, part in vars(self).items()})


def training_windows(
    text: EncodedText, n_rows: int, n_steps: int, seed: int, epoch: int, skip: int
) -> Iterator[PackedWindow]:
    """The windows of an epoch: the shards in a random order, then in another one, without end.

    Args:
        text: the training text.
        n_rows: rows B.
        n_steps: steps S.
        seed: of the order of the shards.
        epoch: from 0; each has an order of its own.
        skip: number of windows to skip.
    """
    rng = Random(f"{seed}-{epoch}")
    passes = (rng.sample(range(text.n_shards), text.n_shards) for _ in count())
    sentences = chain.from_iterable(map(text.sentences, passes))
    return islice(cut_windows(text.ids, sentences, n_rows, n_steps), skip, None)


def heldout_windows(text: EncodedText, n_rows: int, n_steps: int) -> Iterator[PackedWindow]:
    """All of the held-out text, once."""
    return cut_windows(text.ids, text.sentences(range(text.n_shards)), n_rows, n_steps)


def cut_windows(ids: Ids, sentences: Iterator[tuple[int, int]], n_rows: int, n_steps: int) -> Iterator[PackedWindow]:
    """Cut sentences into windows until no sentence is left; each is appended to the first row that lacks words.

    The sentences of several windows are laid out at once, in four tables with a line for each row.

    Args:
        ids: int32 ``[n]``, the text.
        sentences: the first place and the number of words of each.
        n_rows: rows B.
        n_steps: steps S of a window.
    """
    n_columns = _WINDOWS_AT_ONCE * n_steps
    filled = [0] * n_rows  # positions of each row in the tables
    tables = np.empty((4, n_rows, 0), dtype=np.int32)
    while True:
        placed: list[tuple[int, int, int, int]] = []  # row, its position, first id, number of words
        for needed in range(n_steps, n_columns + 1, n_steps):
            for row in [row for row, n in enumerate(filled) if n < needed]:
                while filled[row] < needed and (sentence := next(sentences, None)) is not None:
                    start, n_words = sentence
                    placed.append((row, filled[row], start, n_words))
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
