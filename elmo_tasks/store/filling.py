"""Several processes fill one store together: each missing sentence is computed by one of them.

The work has 64 parts, and the first byte of a key says to which it belongs. A process computes the sentences of the
parts whose locks it holds, and waits for the others. A lock ends with its process, so that a waiting process computes
what a killed one has not written.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from elmo_tasks.progress import say
from elmo_tasks.store.locks import claim
from elmo_tasks.store.shard import Array
from elmo_tasks.store.shards import Shards

SentencesByKey = dict[bytes, Sequence[str]]
"""Token lists by their keys in the store, in the order of the text."""

N_PARTS = 64
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Filling:
    """Fills shards with arrays that have to be computed.

    Args:
        shards: what is filled.
        compute: computes the arrays of some token lists.
        shard_tokens: tokens of a shard at most.
        update: is told the tokens of each shard that this or another process has written.
    """

    shards: Shards
    compute: Callable[[list[Sequence[str]]], list[Array]]
    shard_tokens: int
    update: Callable[[int], object]

    def fill(self, wanted: SentencesByKey) -> int:
        """Compute and write what is missing, or wait for the process that does.

        Args:
            wanted: what the shards must have in the end.

        Returns:
            the tokens that this process has computed.

        Raises:
            UserError: if they cannot be written.
        """
        n_computed, announced, missing = 0, False, find_missing(self.shards, wanted)
        sizes = Counter[int]()
        for key, tokens in wanted.items():
            sizes[key[0] % N_PARTS] += len(tokens)
        while missing:
            n_before, n_own = _n_tokens(missing.values()), 0
            for mine in self._claim(missing, sizes):
                n_own += self._compute(mine, mine)
            n_computed += n_own
            self.shards.scan()
            missing = find_missing(self.shards, missing)
            n_left = _n_tokens(missing.values())
            self.update(n_before - n_left - n_own)
            if missing and n_left == n_before:
                if not announced:
                    what = f"{n_left:,} {self.shards.unit}"
                    say(f"layer store: {what} are being computed by another process; waiting for it")
                announced = True
                time.sleep(_POLL_SECONDS)
        return n_computed

    def fill_in_order(self, wanted: SentencesByKey) -> int:
        """As :meth:`fill`, for sentences that one process must compute in order: all of them, if one is missing.

        Only what was missing is written.
        """
        while (lock := claim(self.shards.folder, "stream")) is None:
            time.sleep(_POLL_SECONDS)
        try:
            self.shards.scan()
            missing = find_missing(self.shards, wanted)
            return self._compute(wanted, missing) if missing else 0
        finally:
            lock.release()

    def _compute(self, wanted: SentencesByKey, missing: SentencesByKey) -> int:
        """Compute some sentences, write those that are missing, and return the number of computed tokens."""
        for keys in _shards_of(wanted, self.shard_tokens):
            sentences = [wanted[key] for key in keys]
            new = [(key, array) for key, array in zip(keys, self.compute(sentences), strict=True) if key in missing]
            if new:
                sample = [wanted[key] for key, _ in (new[0], new[len(new) // 2], new[-1])]
                self.shards.append([key for key, _ in new], [array for _, array in new], sample)
            self.update(_n_tokens(sentences))
        return _n_tokens(wanted.values())

    def _claim(self, missing: SentencesByKey, sizes: Mapping[int, int]) -> Iterator[SentencesByKey]:
        """The sentences that this process is to compute, about a shard at a time; each part is locked until the next.

        Parts are taken in order, as many as make a shard; ``sizes`` are the tokens of each, stored or not. So a store
        that one process fills has the same shards however often the process is killed: the last digits of a layer
        depend on which sentences make a batch.
        """
        items = list(missing.items())
        parts: dict[int, list[int]] = {}
        for k, (key, _) in enumerate(items):
            parts.setdefault(key[0] % N_PARTS, []).append(k)
        waiting = sorted(sizes)
        while waiting:
            with ExitStack() as held:
                places: list[int] = []
                n_tokens = 0
                while waiting and (not n_tokens or n_tokens + sizes[waiting[0]] <= self.shard_tokens):
                    part = waiting.pop(0)
                    n_tokens += sizes[part]
                    lock = claim(self.shards.folder, f"{part:02d}") if part in parts else None
                    if lock is not None:
                        held.callback(lock.release)
                        places += parts[part]
                self.shards.scan()  # another process may have written them before the locks were taken
                mine = find_missing(self.shards, dict(items[k] for k in sorted(places)))
                if mine:
                    yield mine


def find_missing(shards: Shards, wanted: SentencesByKey) -> SentencesByKey:
    """The sentences that are not in the shards."""
    there = shards.contains(list(wanted))
    return {key: tokens for (key, tokens), found in zip(wanted.items(), there, strict=True) if not found}


def _shards_of(sentences: SentencesByKey, max_tokens: int) -> Iterator[list[bytes]]:
    """The keys of each shard that the sentences fill, in order; only a longer sentence exceeds ``max_tokens``."""
    keys: list[bytes] = []
    n_tokens = 0
    for key, tokens in sentences.items():
        if keys and n_tokens + len(tokens) > max_tokens:
            yield keys
            keys, n_tokens = [], 0
        keys.append(key)
        n_tokens += len(tokens)
    if keys:
        yield keys


def _n_tokens(sentences: Iterable[Sequence[str]]) -> int:
    return sum(map(len, sentences))
