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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.states import check_policy
from elmo_tasks.encoders.base import Encoder, Seal, as_sentences
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.progress import counting, say
from elmo_tasks.store.filling import Filling, SentencesByKey, find_missing
from elmo_tasks.store.shard import VERSION, Array
from elmo_tasks.store.shards import Shards

DTYPES = ("float16", "float32")
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

    A store is for the encoder as it is when the store is made. If its weights, number format, precision or warm-up text
    change later, the store neither computes nor reads: a new one has a folder of its own.

    Args:
        root: folder of all stores.
        encoder: frozen; the biLM or another one.
        state: the biLM's state policy; others have ``reset`` only.
        dtype: ``float16`` or ``float32``, the numbers on disk.
        limit_gb: refuse to let this encoder's store grow beyond this.
        progress: show progress while filling (a bar in a terminal, else a line at the end), and the disk space; bad
            shards and words that the encoder cannot read as written are reported in any case.

    Raises:
        UserError: if the encoder does not have this state policy, this kind of store cannot keep it, or for another
            dtype.
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
        if dtype not in DTYPES:
            raise UserError(f"bilm.store.dtype={dtype}: expected {' or '.join(DTYPES)}")
        check_policy(state)
        if state != "reset" and not isinstance(encoder, BiLM):
            raise UserError(f"bilm.state={state}: only a biLM has states; leave bilm.state=reset")
        self.encoder, self.state, self.limit_gb, self.progress = encoder, state, limit_gb, progress
        self._dtype = dtype
        self._seal = Seal(encoder, about := self._describe())
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

    def padded(self, sentences: Iterable[Iterable[str]]) -> Tensor:
        """The layers of some sentences, float32 ``[B, L, T, D]``, zero on padding, without gradients.

        Raises:
            UserError: if there is no sentence, :meth:`fill` was not given one, the encoder has changed since, or is to
                be tuned: a stored layer has no gradient.
        """
        found = as_sentences(sentences)
        if not found:
            raise UserError("padded: expected one sentence or more, found none")
        self._expect_same_encoder(exact=False)
        parameters = self.encoder.parameters() if isinstance(self.encoder, nn.Module) else ()
        if torch.is_grad_enabled() and any(each.requires_grad for each in parameters):
            raise UserError(
                "the encoder's weights require gradients, which stored layers do not have: freeze it with "
                "requires_grad_(False), read within torch.no_grad(), or use embed instead of the store"
            )
        with torch.no_grad():
            return self._padded(found).float()

    @abstractmethod
    def _padded(self, sentences: Sentences) -> Tensor:
        """As :meth:`padded`, of one sentence or more."""

    @abstractmethod
    def _about(self) -> dict[str, Any]:
        """What else distinguishes this store's folder from others."""

    @abstractmethod
    def _compute(self, reader: Encoder, sentences: Sentences) -> list[Array]:
        """What is kept for some token lists: an array ``[n, *row]`` for each."""

    def _describe(self) -> dict[str, Any]:
        """All that distinguishes this store's folder from others, as its encoder is now."""
        about = {"version": VERSION, "bilm": self.encoder.digest, "dtype": self._dtype, "row": list(self.row)}
        return {**about, **self._about()}

    def _expect_same_encoder(self, exact: bool = True) -> None:
        """Check that the encoder is still the one whose layers the folder is for.

        Raises:
            UserError: if it has changed; what was computed with it must then not be written or read here.
        """
        if not self._seal.holds(self.encoder, self._describe, exact):
            raise UserError(
                "the encoder has changed since this layer store was made (weights, number format, precision or "
                "warm-up): make a new store for it"
            )

    def fill(self, sentences: Iterable[Iterable[str]]) -> Filled:
        """Make sure that everything that some sentences need is stored; compute what is not, each once.

        Several processes may do so at the same time: they share the work, and each waits for what others compute.

        Raises:
            UserError: if a sentence is not a list of tokens, the encoder has changed since the store was made, the
                store would outgrow its limit or the disk, or its folder cannot be written.
        """
        wanted = self.wanted(as_sentences(sentences))
        self._expect_same_encoder()
        missing = self.missing(wanted)
        total, new = _n_tokens(wanted), _n_tokens(missing)
        if new:
            _announce(self.shards.reserve(new, self.limit_gb), self.progress)
            _announce(self.encoder.prepare(word for tokens in missing.values() for word in tokens))
            with counting(self.work, new, self.unit, wanted=self.progress) as counter:
                compute = partial(self._computed, self._reader())
                filling = Filling(self.shards, compute, self.shard_tokens, counter.update)
                new = filling.fill_in_order(wanted) if self.state == "carry" else filling.fill(wanted)
        return Filled(computed=new, read=total - new)

    def compute(self, kept: Sentences) -> list[Array]:
        """Compute some token lists again, as :meth:`fill` does: an array ``[n, *row]`` for each."""
        return self._computed(self._reader(), kept)

    def _reader(self) -> Encoder:
        """What one call of :meth:`fill` computes with.

        For a stream it is the biLM with states of its own, which other threads and stores leave alone.
        """
        if self.state != "carry":
            return self.encoder
        assert isinstance(self.encoder, BiLM)  # see __init__
        return self.encoder.with_own_states()

    @torch.no_grad()
    def _computed(self, reader: Encoder, sentences: Sentences) -> list[Array]:
        """As :meth:`_compute`; another thread may change the weights meanwhile, and then nothing is to be written."""
        arrays = self._compute(reader, sentences)
        self._expect_same_encoder()
        return arrays

    def missing(self, wanted: SentencesByKey) -> SentencesByKey:
        """What has yet to be computed.

        Raises:
            UserError: if the folder cannot be read.
        """
        self.shards.scan()
        return find_missing(self.shards, wanted)

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
