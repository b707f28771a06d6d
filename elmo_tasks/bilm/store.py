"""The layer store: each sentence's layers are computed once and shared by all placements, mixes, lambdas and seeds.

A folder per encoder (its digest, state policy, number format), in which a sentence is known by a hash of its tokens,
never by place or name. Where all layers of a biLM would be too large to keep, :class:`TokenStore` keeps the token layer
of each word alone, which saves the character CNN, and runs the LSTMs for every batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from elmo_tasks.bilm.chars import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.shard import VERSION, Array
from elmo_tasks.bilm.shards import Shards
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError

_SHARD_TOKENS = 50_000
_SHARD_FLOATS = 160_000_000  # of all layers of a shard: 640 MB, which are in memory at once

Sentences = Sequence[Sequence[str]]


@dataclass
class Filled:
    """How many tokens a run had computed by the encoder, and how many it found in the store."""

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
        limit_gb: refuse to let this encoder's store grow beyond.
        progress: show a progress bar while filling, and how much room it takes; bad shards and words that the encoder
            cannot read as they stand are named in any case.
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
        self.shards = _shards_of(root, encoder, (encoder.n_layers, encoder.dim), dtype, about)
        self._streamed: dict[tuple[str, ...], bytes] = {}

    def fill(self, sentences: Sentences) -> Filled:
        """Make sure that every sentence's layers are stored; compute those that are not, each once.

        Raises:
            UserError: if the store would outgrow its limit or the disk, or its folder cannot be written.
        """
        self.shards.scan()
        wanted = self._keys(sentences)
        missing = {key: sentence for key, sentence in wanted.items() if key not in self.shards}
        if self.state == "carry" and missing:
            missing = wanted  # the state in which a stream goes on is not stored
        total, new = (sum(map(len, part.values())) for part in (wanted, missing))
        if new:
            _announce(self.shards.reserve(new, self.limit_gb), self.progress)
            _announce(self.encoder.prepare(word for sentence in missing.values() for word in sentence))
            self._compute(missing, new)
        return Filled(computed=new, read=total - new)

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

    def _keys(self, sentences: Sentences) -> dict[bytes, Sequence[str]]:
        """Key to sentence, each distinct one once, in order."""
        if self.state != "carry":
            return {_key(sentence): sentence for sentence in sentences}
        keys: dict[bytes, Sequence[str]] = {}
        before = b""
        for sentence in sentences:
            before = _key(sentence, before)
            keys[before] = sentence
            self._streamed.setdefault(tuple(sentence), before)
        return keys

    def _compute(self, missing: dict[bytes, Sequence[str]], n_tokens: int) -> None:
        shard_tokens = min(_SHARD_TOKENS, _SHARD_FLOATS // (self.encoder.n_layers * self.encoder.dim))
        if isinstance(self.encoder, BiLM):
            self.encoder.forget()
        with _bar(n_tokens, self.progress) as bar:
            for keys in _portions(missing, shard_tokens):
                sentences = [missing[key] for key in keys]
                layers = self._compute_layers(sentences)
                self.shards.append(keys, [x.transpose(0, 1).cpu().numpy() for x in layers])
                bar.update(sum(map(len, sentences)))


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
        self.shards = _shards_of(root, bilm, (bilm.dim // 2,), dtype, {"keep": "tokens"})

    def fill(self, sentences: Sentences) -> Filled:
        """Make sure that the vector of every word is stored; words are counted, not tokens."""
        self.shards.scan()
        words = dict.fromkeys([BEGIN_SENTENCE, END_SENTENCE, *(word for s in sentences for word in s)])
        missing: dict[bytes, Sequence[str]] = {
            key: [word] for word in words if (key := _key([word])) not in self.shards
        }
        if missing:
            _announce(self.shards.reserve(len(missing), self.limit_gb), self.progress)
            _announce(self.bilm.prepare(word for (word,) in missing.values()))
            with _bar(len(missing), self.progress) as bar:
                for keys in _portions(missing, _SHARD_TOKENS):
                    vectors = self.bilm.encode([missing[key][0] for key in keys])
                    self.shards.append(keys, list(vectors.unsqueeze(1).cpu().numpy()))
                    bar.update(len(keys))
        return Filled(computed=len(missing), read=len(words) - len(missing))

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


def _shards_of(root: Path, encoder: Encoder, row_shape: tuple[int, ...], dtype: str, about: dict[str, Any]) -> Shards:
    about = {"version": VERSION, "bilm": encoder.digest, "dtype": dtype, "row": list(row_shape), **about}
    name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    return Shards(root / name, row_shape, dtype, about)


def _key(sentence: Sequence[str], before: bytes = b"") -> bytes:
    """Sixteen bytes for a token list; token borders count."""
    words = [word.encode("utf-8", "surrogatepass") for word in sentence]
    lengths = ",".join(str(len(word)) for word in words).encode()
    return hashlib.blake2b(b"|".join([before, lengths, *words]), digest_size=16).digest()


def _portions(missing: dict[bytes, Sequence[str]], n: int) -> Iterator[list[bytes]]:
    """Keys of one shard each, of n tokens at most."""
    keys: list[bytes] = []
    n_tokens = 0
    for key, sentence in missing.items():
        if keys and n_tokens + len(sentence) > n:
            yield keys
            keys, n_tokens = [], 0
        keys.append(key)
        n_tokens += len(sentence)
    if keys:
        yield keys


def _announce(text: str, wanted: bool = True) -> None:
    if wanted and text:
        tqdm.write(f"layer store: {text}")


def _bar(total: int, progress: bool) -> tqdm[Any]:
    return tqdm(total=total, unit="tok", unit_scale=True, desc="biLM", disable=not progress, leave=False)
