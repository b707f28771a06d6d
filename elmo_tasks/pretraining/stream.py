"""What the updates of a training read, one after the other, made in another thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
from torch import Tensor

from elmo_tasks.errors import UserError
from elmo_tasks.pretraining.inputs import Inputs, Layout
from elmo_tasks.pretraining.pack import Pack
from elmo_tasks.pretraining.settings import Settings
from elmo_tasks.pretraining.windows import PackedWindow, training_windows

_SURVEYED = 48  # windows whose distinct words are counted before a graph's sizes are fixed
_SPARE = 1.1
_MULTIPLE = 64
_READY = 6  # updates made in advance


class Stream:
    """The training text, epoch after epoch, as the numbers of updates.

    Args:
        pack: the text.
        inputs: makes an update's numbers from a window.
        settings: of the training.

    Raises:
        UserError: if the text is too short for a window.
    """

    def __init__(self, pack: Pack, inputs: Inputs, settings: Settings) -> None:
        self.pack, self.inputs, self.settings = pack, inputs, settings
        n_positions, needed = pack.n_positions("train"), settings.rows * settings.window
        self.updates_per_epoch = n_positions // needed
        if not self.updates_per_epoch:
            raise UserError(f"the pack has {n_positions:,} positions, but a window takes {needed:,}")

    def read(self, first: int, group_sizes: list[int] | None, pin: bool) -> Iterator[tuple[Layout, Tensor]]:
        """The inputs of an update and of all after it, without end.

        Args:
            first: number of the update, from 0.
            group_sizes: places for distinct words by group; None for no unused places.
            pin: whether the numbers lie in pinned memory.
        """

        def make() -> Iterator[tuple[Layout, Tensor]]:
            for update, window in enumerate(self._windows(first), start=first):
                layout, numbers = self.inputs.make(window, update, group_sizes)
                yield layout, numbers.pin_memory() if pin else numbers

        source = make()
        with ThreadPoolExecutor(1) as pool:
            ready = deque(pool.submit(next, source) for _ in range(_READY))
            while True:
                now = ready.popleft().result()
                ready.append(pool.submit(next, source))
                yield now

    def example(self, update: int, group_sizes: list[int]) -> tuple[Layout, Tensor]:
        """Inputs of the sizes that updates have, with the window of one of them."""
        return self.inputs.make(next(self._windows(update)), 0, group_sizes)

    def survey(self) -> list[int]:
        """Places for distinct words by group: enough for nearly all windows."""
        windows = islice(self._windows(0), min(_SURVEYED, self.updates_per_epoch))
        counts = [self.inputs.group_counts(window) for window in windows]
        return [int(-(-n * _SPARE // _MULTIPLE) * _MULTIPLE) for n in np.max(counts, axis=0)]

    def _windows(self, first: int) -> Iterator[PackedWindow]:
        """The windows of an update and of all after it."""
        s = self.settings
        epoch, done = divmod(first, self.updates_per_epoch)
        while True:
            windows = training_windows(self.pack, s.rows, s.window, s.seed, epoch, skip=done)
            yield from islice(windows, self.updates_per_epoch - done)
            epoch, done = epoch + 1, 0
