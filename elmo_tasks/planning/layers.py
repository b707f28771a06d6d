"""The part of a plan that is about an encoder's layers: what the store has and lacks, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from elmo_tasks.data.module import TaskData
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.files import free_bytes
from elmo_tasks.planning.timing import distinct_words, time_encoder
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.store import Store

_SHARD_COPIES = 3.5
"""Memory while a shard is computed, as a multiple of its layers in float32 (measured)."""


@dataclass(frozen=True)
class Layers:
    """What of an encoder's layers a run needs.

    Attributes:
        n_tokens: of all distinct sentences; ``n_words``: distinct words of them.
        bytes_kept: what the store holds in the end, by ``bilm.store.keep``; of other encoders than a biLM, ``layers``.
        keep: which of the two is asked for.
        folder: of the store, one for each encoder.
        n_missing: tokens (or words) that are not stored yet.
        bytes_missing: that they will take; ``bytes_free``: of the disk.
        seconds: that the encoder needs for them.
        fill_bytes: of memory, while a shard is computed.
    """

    n_tokens: int
    n_words: int
    bytes_kept: dict[str, int]
    keep: str
    folder: Path
    n_missing: int
    bytes_missing: int
    bytes_free: int
    seconds: float
    fill_bytes: int


def plan_layers(data: TaskData, encoder: Encoder, store: Store, splits: tuple[str, ...], done: bool) -> Layers:
    """What the store has and lacks, and what that takes.

    Raises:
        UserError: if it would outgrow its limit or the disk.
    """
    sentences = [text for split in splits for item in data.items[split] for text in data.reader.texts(item)]
    distinct = list(dict.fromkeys(map(tuple, sentences)))
    n_tokens = sum(map(len, distinct))
    words = {word for sentence in distinct for word in sentence}
    element = store.shards.dtype.itemsize
    kept = {"layers": n_tokens * encoder.n_layers * encoder.dim * element}
    if hasattr(encoder, "encode"):
        kept["tokens"] = (len(words) + 2) * encoder.dim // 2 * element  # two are the sentence marks
    missing = store.missing(store.wanted(sentences))
    n_missing = 0 if done else sum(map(len, missing.values()))
    seconds, fill_bytes = 0.0, 0
    if n_missing:
        store.shards.check_room(n_missing, store.limit_gb)
        rate = time_encoder(encoder, list(missing.values()))
        if isinstance(store, LayerStore):
            n_words = distinct_words(list(missing.values()), store.shard_tokens)
            seconds = n_missing * rate.per_token + n_words * rate.per_word
            shard_floats = min(n_missing, store.shard_tokens) * encoder.n_layers * encoder.dim
            fill_bytes = round(_SHARD_COPIES * 4 * shard_floats)
        else:
            seconds = n_missing * rate.per_word
    return Layers(
        n_tokens=n_tokens,
        n_words=len(words),
        bytes_kept=kept,
        keep="layers" if isinstance(store, LayerStore) else "tokens",
        folder=store.shards.folder,
        n_missing=n_missing,
        bytes_missing=n_missing * store.shards.row_bytes,
        bytes_free=free_bytes(store.shards.folder),
        seconds=seconds,
        fill_bytes=fill_bytes,
    )
