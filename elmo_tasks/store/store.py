"""The layer store: each sentence's layers are computed once and shared by all placements, mixes, lambdas and seeds.

Several processes may fill a store at once; they share the work (see :mod:`elmo_tasks.store.filling`).

There is a folder for each encoder (its digest, state policy, number format), in which a sentence is identified by a
hash of its tokens, never by place or name. Where all layers of a biLM would be too large to keep, :class:`TokenStore`
keeps the token layer of each word alone, which saves the character CNN, and runs the LSTMs for every batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.progress import counting, say
from elmo_tasks.store.filling import Filling, Missing, find_missing
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


class LayerStore:
    """All layers of each sentence, token-major: ``[n, L, D]``.

    Args:
        root: folder of all stores.
        encoder: frozen; the biLM or another one.
        state: the biLM's state policy; others have ``reset`` only. With ``carry`` all sentences that :meth:`fill` is
            given are one stream, and a sentence's key covers those before it; one that comes again keeps the layers of
            its first occurrence.
        dtype: ``float16`` or ``float32``, the numbers on disk.
        limit_gb: refuse to let this encoder's store grow beyond this.
        progress: show a progress bar while filling, and the disk space; bad shards and words that the encoder cannot
            read as written are reported in any case.
    """

    def __init__(
        self,
        root: Path,
        encoder: Encoder,
        *,
        state: str = "reset",
        dtype: str = "float16",
        limit_gb: float = 50.0,
        progress: bool = False,
    ) -> None:
        self.encoder, self.state, self.progress, self.limit_gb = encoder, state, progress, limit_gb
        self._compute_layers, warm = _by_policy(encoder, state)
        about = {"keep": "layers", "state": state, "warm": warm}
        self.shards = _open_shards(root, encoder, (encoder.n_layers, encoder.dim), dtype, about)
        self._streamed: dict[tuple[str, ...], bytes] = {}

    def fill(self, sentences: Sentences) -> Filled:
        """Make sure that every sentence's layers are stored; compute those that are not, each once.

        Raises:
            UserError: if the store would outgrow its limit or the disk, or its folder cannot be written.
        """
        wanted = self.wanted(sentences)
        missing = self.missing(wanted)
        total, new = _n_tokens(wanted), _n_tokens(missing)
        if new:
            _announce(self.shards.reserve(new, self.limit_gb), self.progress)
            _announce(self.encoder.prepare(word for sentence in missing.values() for word in sentence))
            new = self._compute(wanted, new)
        return Filled(computed=new, read=total - new)

    def missing(self, wanted: Missing) -> Missing:
        """The sentences among some that have yet to be computed.

        Raises:
            UserError: if the folder cannot be read.
        """
        self.shards.scan()
        missing = find_missing(self.shards, wanted)
        if self.state == "carry" and missing:
            return wanted  # the state carried between sentences is not stored
        return missing

    def get(self, sentence: Sequence[str]) -> Array:
        """The layers ``[n, L, D]`` of a sentence that :meth:`fill` was given."""
        return self.shards.get(self._streamed[tuple(sentence)] if self.state == "carry" else _key(sentence))

    def padded(self, sentences: Sentences) -> Tensor:
        """The layers of some sentences, float32 ``[B, L, T, D]``, zero on padding."""
        n_tokens = max(map(len, sentences))
        layers = np.zeros((len(sentences), n_tokens, self.encoder.n_layers, self.encoder.dim), dtype=np.float32)
        for row, sentence in zip(layers, sentences, strict=True):
            row[: len(sentence)] = self.get(sentence)
        return torch.from_numpy(layers).transpose(1, 2)

    def wanted(self, sentences: Sentences) -> Missing:
        """Key to sentence, each distinct one once, in order."""
        if self.state != "carry":
            return {_key(sentence): sentence for sentence in sentences}
        keys: Missing = {}
        before = b""
        for sentence in sentences:
            before = _key(sentence, before)
            keys[before] = sentence
            self._streamed.setdefault(tuple(sentence), before)
        return keys

    def _compute(self, wanted: Missing, n_tokens: int) -> int:
        """Fill the store; the tokens that this process has computed."""
        if isinstance(self.encoder, BiLM):
            self.encoder.forget()
        with counting("biLM layers", n_tokens, wanted=self.progress) as counter:
            filling = Filling(self.shards, self._token_major, self.shard_tokens, counter.update)
            return filling.fill_in_order(wanted) if self.state == "carry" else filling.fill(wanted)

    @property
    def shard_tokens(self) -> int:
        """Tokens of a shard at most."""
        return min(_SHARD_TOKENS, _SHARD_FLOATS // (self.encoder.n_layers * self.encoder.dim))

    def _token_major(self, sentences: Sentences) -> list[Array]:
        return [layers.transpose(0, 1).cpu().numpy() for layers in self._compute_layers(sentences)]


def _by_policy(encoder: Encoder, state: str) -> tuple[Callable[[Sentences], list[Tensor]], str | None]:
    """How an encoder computes layers under a state policy, and the digest of the text that warmed it up."""
    if state == "reset":
        return encoder.layers, None
    if not isinstance(encoder, BiLM):
        raise UserError(f"bilm.state={state}: only a biLM has states; leave bilm.state=reset")
    if state == "carry":  # one stream, in order
        return lambda sentences: [encoder.layers([sentence], state="carry")[0] for sentence in sentences], None
    return lambda sentences: encoder.layers(sentences, state=state), encoder.warm_digest


class TokenStore:
    """The biLM's token layer ``[1, P]`` of each distinct word; the LSTMs run for every batch.

    Arguments as for :class:`LayerStore`; ``carry`` is not possible here, since batches are not in reading order.
    """

    def __init__(
        self,
        root: Path,
        bilm: BiLM,
        *,
        state: str = "reset",
        dtype: str = "float16",
        limit_gb: float = 50.0,
        progress: bool = False,
    ) -> None:
        if state == "carry":
            raise UserError("bilm.state=carry reads sentences in order: it needs bilm.store.keep=layers")
        self.bilm, self.state, self.progress, self.limit_gb = bilm, state, progress, limit_gb
        self.shards = _open_shards(root, bilm, (bilm.dim // 2,), dtype, {"keep": "tokens"})

    def fill(self, sentences: Sentences) -> Filled:
        """Make sure that the vector of every word is stored; words are counted, not tokens."""
        wanted = self.wanted(sentences)
        missing, n_computed = self.missing(wanted), 0
        if missing:
            _announce(self.shards.reserve(len(missing), self.limit_gb), self.progress)
            _announce(self.bilm.prepare(word for (word,) in missing.values()))
            with counting("biLM token layer", len(missing), "words", wanted=self.progress) as counter:
                n_computed = Filling(self.shards, self._encode, _SHARD_TOKENS, counter.update).fill(wanted)
        return Filled(computed=n_computed, read=len(wanted) - n_computed)

    def missing(self, wanted: Missing) -> Missing:
        """The words among some that have yet to be encoded."""
        self.shards.scan()
        return find_missing(self.shards, wanted)

    def wanted(self, sentences: Sentences) -> Missing:
        """Key to word (a list of one), each once, in order."""
        words = dict.fromkeys([BEGIN_SENTENCE, END_SENTENCE, *(word for s in sentences for word in s)])
        return {_key([word]): [word] for word in words}

    def _encode(self, words: Sentences) -> list[Array]:
        return list(self.bilm.encode([word for (word,) in words]).unsqueeze(1).cpu().numpy())

    def padded(self, sentences: Sentences) -> Tensor:
        """The layers of some sentences, float32 ``[B, L, T, D]``, zero on padding."""
        layers = self.bilm.layers(sentences, state=self.state, encode=self._vectors)
        padded = layers[0].new_zeros(len(layers), self.bilm.n_layers, max(map(len, sentences)), self.bilm.dim)
        for row, x in zip(padded, layers, strict=True):
            row[:, : x.shape[1]] = x
        return padded

    def _vectors(self, words: Sequence[str]) -> Tensor:
        rows = np.concatenate([self.shards.get(_key([word])) for word in words]).astype(np.float32)
        return torch.from_numpy(rows).to(self.bilm.encoder.characters.device)


def _open_shards(root: Path, encoder: Encoder, row_shape: tuple[int, ...], dtype: str, about: dict[str, Any]) -> Shards:
    about = {"version": VERSION, "bilm": encoder.digest, "dtype": dtype, "row": list(row_shape), **about}
    name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    return Shards(root / name, row_shape, dtype, about)


def _key(sentence: Sequence[str], before: bytes = b"") -> bytes:
    """Sixteen bytes for a token list; token boundaries count."""
    words = [word.encode("utf-8", "surrogatepass") for word in sentence]
    lengths = ",".join(str(len(word)) for word in words).encode()
    return hashlib.blake2b(b"|".join([before, lengths, *words]), digest_size=16).digest()


def _n_tokens(sentences: Missing) -> int:
    return sum(map(len, sentences.values()))


def _announce(text: str, wanted: bool = True) -> None:
    if wanted and text:
        say(f"layer store: {text}")
