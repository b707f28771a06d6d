"""The layer store: each sentence's layers are computed once and shared by all placements, mixes, lambdas and seeds.

Several processes may fill a store at once; they share the work (see :mod:`elmo_tasks.store.filling`).

There is a folder for each encoder (its digest, state policy, number format), in which a sentence is identified by a
hash of its tokens, never by place or name. There are two kinds: :mod:`elmo_tasks.store.layers` keeps all layers of
each sentence; :mod:`elmo_tasks.store.tokens` keeps the token layer of each word alone, which saves the character CNN,
and runs the LSTMs for every batch.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.progress import counting, say
from elmo_tasks.store.filling import Filling, SentencesByKey, find_missing
from elmo_tasks.store.shard import VERSION, Array
from elmo_tasks.store.shards import Shards

_SHARD_TOKENS = 50_000
_SHARD_FLOATS = 160_000_000  # of all layers of a shard: 640 MB, which are in memory at once

Sentences = Sequence[Sequence[str]]


@dataclass
class Filled:
    """How many tokens the encoder computed for a run, and how many were read from the store."""

    computed: int = 0
    read: int = 0


class Store(ABC):
    """What an encoder computed, kept on disk.

    Args:
        root: folder of all stores.
        encoder: frozen; the biLM or another one.
        state: the biLM's state policy; others have ``reset`` only.
        dtype: ``float16`` or ``float32``, the numbers on disk.
        limit_gb: refuse to let this encoder's store grow beyond this.
        progress: show progress while filling (a bar in a terminal, else a line at the end), and the disk space; bad
            shards and words that the encoder cannot read as written are reported in any case.

    Raises:
        UserError: if the encoder does not have this state policy, or this kind of store cannot keep it.
    """

    work: ClassVar[str]
    """What the progress bar calls the work."""
    unit: ClassVar[str]
    """What the progress bar counts."""

    def __init__(
        self,
        root: str | Path,
        encoder: Encoder,
        *,
        state: str = "reset",
        dtype: str = "float16",
        limit_gb: float = 50.0,
        progress: bool = False,
    ) -> None:
        self.encoder, self.state, self.limit_gb, self.progress = encoder, state, limit_gb, progress
        about = {"version": VERSION, "bilm": encoder.digest, "dtype": dtype, "row": list(self.row), **self._about()}
        name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
        self.shards = Shards(Path(root) / name, self.row, dtype, about, self.unit)

    @property
    @abstractmethod
    def row(self) -> tuple[int, ...]:
        """The shape of what is kept for a token."""

    @property
    def shard_tokens(self) -> int:
        """Tokens of a shard at most."""
        return min(_SHARD_TOKENS, _SHARD_FLOATS // math.prod(self.row))

    @abstractmethod
    def wanted(self, sentences: Sentences) -> SentencesByKey:
        """All that must be stored for some sentences: token lists by key, each once, in order."""

    @abstractmethod
    def padded(self, sentences: Sentences) -> Tensor:
        """The layers of some sentences, float32 ``[B, L, T, D]``, zero on padding."""

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """What else distinguishes this store's folder from others."""

    @abstractmethod
    def _compute(self, sentences: Sentences) -> list[Array]:
        """What is kept for some token lists: an array ``[n, *row]`` for each."""

    def fill(self, sentences: Sentences) -> Filled:
        """Make sure that everything that some sentences need is stored; compute what is not, each once.

        Several processes may do so at the same time: they share the work, and each waits for what others compute.

        Raises:
            UserError: if the store would outgrow its limit or the disk, or its folder cannot be written.
        """
        wanted = self.wanted(sentences)
        missing = self.missing(wanted)
        total, new = _n_tokens(wanted), _n_tokens(missing)
        if new:
            _announce(self.shards.reserve(new, self.limit_gb), self.progress)
            _announce(self.encoder.prepare(word for tokens in missing.values() for word in tokens))
            with counting(self.work, new, self.unit, wanted=self.progress) as counter:
                new = self._fill(Filling(self.shards, self._compute, self.shard_tokens, counter.update), wanted)
        return Filled(computed=new, read=total - new)

    def missing(self, wanted: SentencesByKey) -> SentencesByKey:
        """What has yet to be computed.

        Raises:
            UserError: if the folder cannot be read.
        """
        self.shards.scan()
        return find_missing(self.shards, wanted)

    def _fill(self, filling: Filling, wanted: SentencesByKey) -> int:
        return filling.fill(wanted)

    def _stored(self, key: bytes, tokens: Sequence[str]) -> Array:
        """What is stored under a key, which is that of some tokens.

        Raises:
            UserError: if nothing is.
        """
        try:
            return self.shards.get(key)
        except KeyError:
            raise UserError(f"{quoted(' '.join(tokens))} is not in the layer store; call fill with it first") from None


def key_of(sentence: Sequence[str], before: bytes = b"") -> bytes:
    """Sixteen bytes for a token list; token boundaries count."""
    words = [word.encode("utf-8", "surrogatepass") for word in sentence]
    lengths = ",".join(str(len(word)) for word in words).encode()
    return hashlib.blake2b(b"|".join([before, lengths, *words]), digest_size=16).digest()


def _n_tokens(sentences: SentencesByKey) -> int:
    return sum(map(len, sentences.values()))


def _announce(text: str, wanted: bool = True) -> None:
    if wanted and text:
        say(f"layer store: {text}")
