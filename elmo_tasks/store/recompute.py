"""Whether stored layers are those of an encoder: a sample of sentences is computed again."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from elmo_tasks.bilm.model import PRECISIONS, BiLM
from elmo_tasks.encoders.base import Encoder, as_sentences
from elmo_tasks.store.inventory import StoredFolder
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.shard import readable_indexes
from elmo_tasks.store.store import Sentences, Store, key_of
from elmo_tasks.store.tokens import TokenStore

_TOLERANCE = {"float32": 0.002, "bfloat16": 0.05, "int8": 0.05}
"""Of a number and of 1 plus its size: numbers are kept as float16, and another processor rounds otherwise."""


@dataclass
class Recomputed:
    """How many sentences (or words) of a folder were computed again, and those that differ with the largest error."""

    n: int = 0
    differing: list[tuple[Sequence[str], float]] = field(default_factory=list)


def store_of(kept: StoredFolder, encoder: Encoder, warm_up: Sentences) -> Store | None:
    """The store whose folder this is; None if it is of another encoder, or of one stream of ``carry``.

    Args:
        kept: the folder.
        encoder: in whichever precision the folder has; that of a biLM is set.
        warm_up: the text for ``bilm.state=warm``.
    """
    for precision in PRECISIONS if isinstance(encoder, BiLM) else ("float32",):
        if isinstance(encoder, BiLM):
            encoder.precision = precision
        if encoder.digest == kept.encoder:
            break
    else:
        return None
    if kept.state == "carry":  # a sentence's layers depend on all before it
        return None
    if kept.state == "warm" and isinstance(encoder, BiLM):
        encoder.warm_up(warm_up)
    store: Store
    if isinstance(encoder, BiLM) and kept.keep == "tokens":
        store = TokenStore(kept.folder.parent, encoder, dtype=kept.dtype)
    else:
        store = LayerStore(kept.folder.parent, encoder, state=kept.state, dtype=kept.dtype)
    return store if store.shards.folder == kept.folder else None


def recompute(store: Store, sentences: Sentences, n: int) -> Recomputed:
    """Compute at most ``n`` of what is stored again: sentences that the shards name, and those of ``sentences``."""
    samples = [tokens for index in readable_indexes(store.shards.folder) for tokens in as_sentences(index.sample)]
    wanted = store.wanted(sentences) | {key_of(tokens): tokens for tokens in samples}
    missing = store.missing(wanted)
    stored = sorted(key for key in wanted if key not in missing)
    chosen = random.Random(0).sample(stored, min(n, len(stored)))
    encoder, found = store.encoder, Recomputed(len(chosen))
    tolerance = _TOLERANCE[encoder.precision if isinstance(encoder, BiLM) else "float32"]
    for key, right in zip(chosen, store.compute([wanted[key] for key in chosen]), strict=True):
        kept = store.shards.get(key).astype(np.float32)
        difference = np.abs(kept - right)
        if (difference > tolerance * (1 + np.abs(right))).any():
            found.differing.append((wanted[key], float(difference.max())))
    return found
