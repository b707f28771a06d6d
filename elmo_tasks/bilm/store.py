"""The layer store: each sentence's layers are computed once and shared by all placements, mixes, lambdas and seeds.

A folder per biLM (weights, state policy, number format), in which a sentence is known by a hash of its tokens, never by
place or name. Where all layers would be too large to keep, :class:`TokenStore` keeps the token layer of each word
alone, which saves the character CNN, and runs the LSTMs for every batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from elmo_tasks.bilm.chars import BEGIN_SENTENCE, END_SENTENCE, MAX_CHARACTERS, cut_words
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.shards import VERSION, Array, Shards
from elmo_tasks.errors import UserError

_SHARD_TOKENS = 50_000

Sentences = Sequence[Sequence[str]]


@dataclass
class Filled:
    """How many tokens a run had computed by the biLM, and how many it found in the store."""

    computed: int = 0
    read: int = 0


class LayerStore:
    """All layers of each sentence, token-major: ``[n, L, D]``.

    Args:
        root: folder of all stores.
        bilm: the frozen biLM.
        state: its state policy. With ``carry`` all sentences that :meth:`fill` is given are one stream, and a
            sentence's key covers those before it; one that comes again keeps the layers of its first occurrence.
        dtype: ``float16`` or ``float32``, the numbers on disk.
        limit_gb: refuse to let this biLM's store grow beyond.
        progress: show a progress bar while filling.
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
        self.bilm, self.state, self.progress, self.limit_gb = bilm, state, progress, limit_gb
        about = {"keep": "layers", "state": state, "warm": bilm.warm_digest if state == "warm" else None}
        self.shards = _shards_of(root, bilm, (bilm.n_layers, bilm.dim), dtype, about)
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
            _announce_cut((word for sentence in missing.values() for word in sentence), self.progress)
            self._compute(missing, new)
        return Filled(computed=new, read=total - new)

    def get(self, sentence: Sequence[str]) -> Array:
        """The layers ``[n, L, D]`` of a sentence that :meth:`fill` was given."""
        return self.shards.get(self._streamed[tuple(sentence)] if self.state == "carry" else _key(sentence))

    def padded(self, sentences: Sentences) -> Tensor:
        """The layers of some sentences, float32 ``[B, L, T, D]``, zero on padding."""
        n_tokens = max(map(len, sentences))
        layers = np.zeros((len(sentences), n_tokens, self.bilm.n_layers, self.bilm.dim), dtype=np.float32)
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
        self.bilm.forget()
        with _bar(n_tokens, self.progress) as bar:
            for keys in _portions(missing):
                sentences = [missing[key] for key in keys]
                if self.state == "carry":  # one stream, in order
                    layers = [self.bilm.layers([sentence], state="carry")[0] for sentence in sentences]
                else:
                    layers = self.bilm.layers(sentences, state=self.state)
                self.shards.append(keys, [x.transpose(0, 1).cpu().numpy() for x in layers])
                bar.update(sum(map(len, sentences)))


class TokenStore:
    """The token layer ``[1, P]`` of each distinct word; the LSTMs run for every batch.

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
            _announce_cut((word for (word,) in missing.values()), self.progress)
            with _bar(len(missing), self.progress) as bar:
                for keys in _portions(missing):
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


def _shards_of(root: Path, bilm: BiLM, row_shape: tuple[int, ...], dtype: str, about: dict[str, Any]) -> Shards:
    about = {"version": VERSION, "bilm": bilm.digest, "dtype": dtype, "row": list(row_shape), **about}
    if bilm.precision != "float32":
        about["precision"] = bilm.precision
    name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    return Shards(root / name, row_shape, dtype, about)


def _key(sentence: Sequence[str], before: bytes = b"") -> bytes:
    """Sixteen bytes for a token list; token borders count."""
    words = [word.encode("utf-8", "surrogatepass") for word in sentence]
    lengths = ",".join(str(len(word)) for word in words).encode()
    return hashlib.blake2b(b"|".join([before, lengths, *words]), digest_size=16).digest()


def _portions(missing: dict[bytes, Sequence[str]]) -> Iterator[list[bytes]]:
    """Keys of one shard each."""
    keys: list[bytes] = []
    n_tokens = 0
    for key, sentence in missing.items():
        if keys and n_tokens + len(sentence) > _SHARD_TOKENS:
            yield keys
            keys, n_tokens = [], 0
        keys.append(key)
        n_tokens += len(sentence)
    if keys:
        yield keys


def _announce(text: str, progress: bool) -> None:
    if progress:
        tqdm.write(f"layer store: {text}")


def _announce_cut(words: Iterable[str], progress: bool) -> None:
    cut = cut_words(words) if progress else []
    if cut:
        limit = MAX_CHARACTERS - 2
        _announce(f"words longer than {limit} bytes, which lose their end: {len(cut):,}, such as {cut[0][:60]!r}", True)


def _bar(total: int, progress: bool) -> tqdm[Any]:
    return tqdm(total=total, unit="tok", unit_scale=True, desc="biLM", disable=not progress, leave=False)
