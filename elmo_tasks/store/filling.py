"""Several processes fill one store together: each missing sentence is computed by one of them.

A key's first byte says in which of 64 parts of the work it is. A process computes the sentences of the parts whose
locks it holds, and waits for those of others. A lock ends with its process, so what a killed one had not written is
computed by whoever waits for it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from elmo_tasks.progress import say
from elmo_tasks.store.locks import claim
from elmo_tasks.store.shard import Array
from elmo_tasks.store.shards import Shards

Missing = dict[bytes, Sequence[str]]
"""What is not in the store: key to tokens, in the order of the text."""

N_PARTS = 64
_POLL_SECONDS = 0.5


def fill(
    shards: Shards,
    wanted: Missing,
    compute: Callable[[list[Sequence[str]]], list[Array]],
    *,
    shard_tokens: int,
    update: Callable[[int], object],
) -> int:
    """Compute and write what is missing, or wait for the process that does.

    Args:
        shards: what is filled.
        wanted: what it must have in the end.
        compute: the arrays of some token lists.
        shard_tokens: tokens of a shard at most.
        update: is told the tokens of each shard that this or another process has written.

    Returns:
        the tokens that this process has computed.

    Raises:
        UserError: if they cannot be written.
    """
    n_computed, told, missing = 0, False, lacking(shards, wanted)
    sizes = Counter[int]()
    for key, tokens in wanted.items():
        sizes[key[0] % N_PARTS] += len(tokens)
    while missing:
        n_before, n_own = _n_tokens(missing.values()), 0
        for mine in _claimed(shards, missing, sizes, shard_tokens):
            n_own += compute_all(shards, mine, compute, shard_tokens=shard_tokens, update=update)
        n_computed += n_own
        shards.scan()
        missing = lacking(shards, missing)
        n_left = _n_tokens(missing.values())
        update(n_before - n_left - n_own)
        if missing and n_left == n_before:
            if not told:
                say(f"layer store: {n_left:,} tokens are being computed by another process; waiting for it")
            told = True
            time.sleep(_POLL_SECONDS)
    return n_computed


def fill_in_order(
    shards: Shards,
    wanted: Missing,
    compute: Callable[[list[Sequence[str]]], list[Array]],
    *,
    shard_tokens: int,
    update: Callable[[int], object],
) -> int:
    """As :func:`fill`, for sentences that one process must compute in their order: all of them, if one is missing."""
    while (lock := claim(shards.folder, "stream")) is None:
        time.sleep(_POLL_SECONDS)
    try:
        shards.scan()
        if not lacking(shards, wanted):
            return 0
        return compute_all(shards, wanted, compute, shard_tokens=shard_tokens, update=update)
    finally:
        lock.release()


def compute_all(
    shards: Shards,
    missing: Missing,
    compute: Callable[[list[Sequence[str]]], list[Array]],
    *,
    shard_tokens: int,
    update: Callable[[int], object],
) -> int:
    """Compute some sentences and write them, a shard after the other; their tokens are returned."""
    for keys in portions(missing, shard_tokens):
        sentences = [missing[key] for key in keys]
        shards.append(keys, compute(sentences))
        update(_n_tokens(sentences))
    return _n_tokens(missing.values())


def _claimed(shards: Shards, missing: Missing, sizes: Mapping[int, int], shard_tokens: int) -> Iterator[Missing]:
    """What this process is to compute, about a shard at a time; the locks are held until the next is asked for.

    Parts go together in their order, as many as make a shard; ``sizes`` are the tokens of each, stored or not. So a
    store that one process fills has the same shards however often that is killed: the last digits of a layer depend on
    which sentences make a batch.
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
            while waiting and (not n_tokens or n_tokens + sizes[waiting[0]] <= shard_tokens):
                part = waiting.pop(0)
                n_tokens += sizes[part]
                lock = claim(shards.folder, f"{part:02d}") if part in parts else None
                if lock is not None:
                    held.callback(lock.release)
                    places += parts[part]
            shards.scan()  # another process may have written them before the locks were taken
            mine = lacking(shards, dict(items[k] for k in sorted(places)))
            if mine:
                yield mine


def lacking(shards: Shards, wanted: Missing) -> Missing:
    """Those of some sentences that are not in the shards."""
    there = shards.contains(list(wanted))
    return {key: tokens for (key, tokens), found in zip(wanted.items(), there, strict=True) if not found}


def portions(sentences: Missing, n: int) -> Iterator[list[bytes]]:
    """Keys of one shard each, of n tokens at most."""
    keys: list[bytes] = []
    n_tokens = 0
    for key, tokens in sentences.items():
        if keys and n_tokens + len(tokens) > n:
            yield keys
            keys, n_tokens = [], 0
        keys.append(key)
        n_tokens += len(tokens)
    if keys:
        yield keys


def _n_tokens(sentences: Iterable[Sequence[str]]) -> int:
    return sum(map(len, sentences))
