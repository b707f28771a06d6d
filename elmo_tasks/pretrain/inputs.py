"""What an update reads, as one block of numbers that goes to the device in a single copy."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_tasks.nn.characters import MAX_CHARACTERS, PADDING, character_id_table
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.windows import PackedWindow

LENGTHS = (8, 11, 15, MAX_CHARACTERS)
"""Words go through the character CNN in groups: those of at most 8 ids, of at most 11, and so on."""

EVERY_WORD = 10**9
"""A number of draws so large that every word is certain to be a candidate; the logits then need no correction."""

_SURVEYED = 48  # windows whose distinct words are counted before a graph's sizes are fixed
_SPARE = 1.1
_MULTIPLE = 64
_READY = 6  # updates made in advance


class WordTable:
    """Character ids of all words of a pack, and the group that each word goes with.

    Attributes:
        char_ids: int16 ``[W, 50]``.
        lengths: int64 ``[W]``, ids of each word without padding.
        groups: int64 ``[W]``, from 0.
    """

    def __init__(self, words: Sequence[str]) -> None:
        table = character_id_table(words, extra=MAX_CHARACTERS)
        self.char_ids = table.to(torch.int16)
        self.lengths = (table != PADDING).sum(dim=1).numpy()
        self.groups = np.searchsorted(LENGTHS, self.lengths)


@dataclass(frozen=True)
class Layout:
    """Where the parts of an update's numbers lie.

    Attributes:
        n_positions: of a window, both directions.
        n_samples: candidates of the softmax.
        group_sizes: distinct words of a window by group, unused places counted.
    """

    n_positions: int
    n_samples: int
    group_sizes: tuple[int, ...]

    def split(self, numbers: Tensor) -> list[Tensor]:
        """Views of the parts of int32 ``[n]``: input words, targets, candidates, distinct words, draws as float32."""
        sizes = [self.n_positions, self.n_positions, self.n_samples, sum(self.group_sizes), 1]
        return list(torch.split(numbers, sizes))


class Inputs:
    """Makes an update's numbers from a window.

    Args:
        data: has a pack.
        words: of the pack.
        n_samples: candidates, drawn anew for each update from its number and ``seed`` alone: all processes draw the
            same. With as many as words, or 0, all words are candidates.
        seed: of the candidates.
        rows: that this process reads.
    """

    def __init__(self, data: LmData, words: WordTable, n_samples: int, seed: int, rows: slice = slice(None)) -> None:
        self.data, self.groups, self.seed, self.rows = data, words.groups, seed, rows
        self.vocabulary_size = len(data.vocabulary)
        self.sampled = 0 < n_samples < self.vocabulary_size
        self.n_samples = n_samples if self.sampled else self.vocabulary_size
        ranks = np.arange(self.vocabulary_size)
        self._rates = -np.log1p(-np.log1p(1 / (ranks + 1)) / np.log(self.vocabulary_size + 1))
        self._used = np.zeros(len(self.groups), dtype=bool)
        self._rows = np.zeros(len(self.groups), dtype=np.int32)

    def stream(self, first: int, group_sizes: list[int] | None, pin: bool) -> Generator[tuple[Layout, Tensor]]:
        """The inputs of an update and of all after it, without end, made in another thread.

        Args:
            first: number of the update, from 0.
            group_sizes: places for distinct words by group; None for no unused places.
            pin: whether the numbers lie in pinned memory.
        """

        def make() -> Iterator[tuple[Layout, Tensor]]:
            for update, window in enumerate(self.data.windows(first), start=first):
                layout, numbers = self.make(window.of_rows(self.rows), update, group_sizes)
                yield layout, numbers.pin_memory() if pin else numbers

        source = make()
        with ThreadPoolExecutor(1) as pool:
            ready = deque(pool.submit(next, source) for _ in range(_READY))
            while True:
                now = ready.popleft().result()
                ready.append(pool.submit(next, source))
                yield now

    def survey(self) -> list[int]:
        """Places for distinct words by group: enough for nearly all windows."""
        windows = islice(self.data.windows(0), min(_SURVEYED, self.data.updates_per_epoch))
        counts = [self.group_counts(window.of_rows(self.rows)) for window in windows]
        return [int(-(-n * _SPARE // _MULTIPLE) * _MULTIPLE) for n in np.max(counts, axis=0)]

    def group_counts(self, window: PackedWindow) -> NDArray[Any]:
        """Distinct words of a window by group."""
        return np.bincount(self.groups[np.unique(window.inputs)], minlength=len(LENGTHS))

    def make(self, window: PackedWindow, update: int, group_sizes: Sequence[int] | None) -> tuple[Layout, Tensor]:
        """The numbers of an update.

        Args:
            window: the text.
            update: its number, from 0.
            group_sizes: places for distinct words by group; where a group has too few, the next ones take the words,
                and where that fails the places are as many as the words. None for no unused places.

        Returns:
            where the parts lie, and the numbers, int32 ``[n]``.
        """
        words = self._distinct(window)
        members = [words[self.groups[words] == group] for group in range(len(LENGTHS))]
        members, sizes = _placed(members, group_sizes)
        distinct = np.concatenate(members)
        self._rows[distinct[distinct >= 0]] = np.flatnonzero(distinct >= 0)
        samples, tries = self._samples(update)
        layout = Layout(window.inputs.size, self.n_samples, sizes)
        targets = self.data.target_ids[window.targets]
        parts = [self._rows[window.inputs], targets, samples, np.maximum(distinct, 0)]
        draws = np.array([tries], dtype=np.float32).view(np.int32)
        return layout, torch.from_numpy(np.concatenate([*(part.ravel().astype(np.int32) for part in parts), draws]))

    def _distinct(self, window: PackedWindow) -> NDArray[Any]:
        """As ``np.unique``, in a fifth of the time."""
        self._used[window.inputs] = True
        words = np.flatnonzero(self._used)
        self._used[words] = False
        return words

    def _samples(self, update: int) -> tuple[NDArray[Any], float]:
        """Distinct words, low ids more often, and the number of draws that gives a word its probability to be there.

        Words come in as in bilm-tf, one log-uniform draw after the other until there are enough, but in
        continuous time: the first draw of a word of probability p comes after an exponential time of rate
        -log(1 - p), so that it is among the draws until time t with probability 1 - (1 - p)^t. With t the time of the
        first word that is too many, sums in which each candidate is divided by this probability have no bias (bottom-k
        sampling).
        """
        if not self.sampled:
            return np.arange(self.vocabulary_size), EVERY_WORD
        seed = hashlib.sha256(f"{self.seed}-{update}".encode()).digest()[:8]
        times = np.random.default_rng(int.from_bytes(seed, "little")).exponential(size=self.vocabulary_size)
        times /= self._rates
        order = np.argpartition(times, self.n_samples)
        return order[: self.n_samples], float(np.float32(times[order[self.n_samples]]))


def _placed(members: list[NDArray[Any]], sizes: Sequence[int] | None) -> tuple[list[NDArray[Any]], tuple[int, ...]]:
    """The words of each group in ``sizes`` places, -1 in unused ones; words beyond a group's size go with longer words.

    If the last group has no place for them, the sizes are those of the groups themselves, as without ``sizes``.
    """
    placed, waiting = [], np.empty(0, dtype=np.int64)
    for words, size in zip(members, sizes or (), strict=False):
        waiting = np.concatenate([waiting, words])
        now, waiting = waiting[:size], waiting[size:]
        placed.append(np.pad(now, (0, size - len(now)), constant_values=-1))
    if sizes is None or len(waiting):
        return members, tuple(map(len, members))
    return placed, tuple(sizes)
