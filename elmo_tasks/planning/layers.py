"""The part of a plan that is about an encoder's layers: what the store has and lacks, and what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_tasks.bilm.model import BiLM
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
    """The layers that a run needs, how many of them are not stored yet, and what computing these takes.

    Attributes:
        n_tokens: tokens in all distinct sentences.
        n_words: distinct words in them.
        bytes_kept: the size of the filled store for each choice of ``bilm.store.keep`` that the encoder has.
        keep: the choice of this run, ``layers`` or ``tokens``.
        folder: the store's folder for this encoder.
        n_missing: tokens (with ``keep=tokens``, words) that are not stored yet.
        bytes_missing: what they will take on the disk.
        bytes_free: what is free there.
        seconds: how long the encoder will need for them.
        fill_bytes: the memory that computing a shard takes.
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
    """Look at what the store lacks, and time the encoder on some of it.

    Args:
        data: read.
        encoder: computes the layers.
        store: keeps them.
        splits: the splits whose layers the run needs.
        done: whether the run is finished, so that nothing is missing.

    Raises:
        UserError: if it would outgrow its limit or the disk.
    """
    sentences = [text for split in splits for item in data.items[split] for text in data.reader.texts(item)]
    distinct = list(dict.fromkeys(map(tuple, sentences)))
    n_tokens = sum(map(len, distinct))
    words = {word for sentence in distinct for word in sentence}
    element = store.shards.dtype.itemsize
    kept = {"layers": n_tokens * encoder.n_layers * encoder.dim * element}
    if isinstance(encoder, BiLM):
        kept["tokens"] = (len(words) + 2) * encoder.dim // 2 * element  # two are the sentence marks
    missing = list(store.missing(store.wanted(sentences)).values())
    n_missing = 0 if done else sum(map(len, missing))
    seconds, fill_bytes = _cost_of_filling(encoder, store, missing, n_missing) if n_missing else (0.0, 0)
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


def _cost_of_filling(encoder: Encoder, store: Store, missing: list[Sequence[str]], n_missing: int) -> tuple[float, int]:
    """Seconds and bytes of memory for computing ``n_missing`` tokens (or words).

    Raises:
        UserError: if the store would outgrow its limit or the disk.
    """
    store.shards.check_room(n_missing, store.limit_gb)
    rate = time_encoder(encoder, missing)
    if not isinstance(store, LayerStore):
        return n_missing * rate.per_word, 0
    seconds = n_missing * rate.per_token + distinct_words(missing, store.shard_tokens) * rate.per_word
    shard_floats = min(n_missing, store.shard_tokens) * encoder.n_layers * encoder.dim
    return seconds, round(_SHARD_COPIES * 4 * shard_floats)
