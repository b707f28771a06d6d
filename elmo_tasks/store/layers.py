"""A store of all layers of each sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.encoders.base import Encoder, as_sentences
from elmo_tasks.store.filling import SentencesByKey
from elmo_tasks.store.shard import Array
from elmo_tasks.store.store import Sentences, Store, key_of


class LayerStore(Store):
    """All layers of each sentence, token-major: ``[n, L, D]``.

    With ``state=carry`` all sentences that :meth:`fill` is given are one stream, and a sentence's key covers those
    before it; one that comes again keeps the layers of its first occurrence.
    """

    work, unit = "biLM layers", "tokens"

    @property
    def row(self) -> tuple[int, ...]:
        """``[L, D]``."""
        return self.encoder.n_layers, self.encoder.dim

    def wanted(self, sentences: Sentences) -> SentencesByKey:
        """Key to sentence, each distinct one once, in order."""
        if self.state != "carry":
            return {key_of(sentence): sentence for sentence in sentences}
        keys: SentencesByKey = {}
        before = b""
        for sentence in sentences:
            before = key_of(sentence, before)
            keys[before] = sentence
            self._streamed.setdefault(tuple(sentence), before)
        return keys

    def missing(self, wanted: SentencesByKey) -> SentencesByKey:
        """The sentences that have yet to be computed; of a stream all, since no state is stored."""
        missing = super().missing(wanted)
        return wanted if self.state == "carry" and missing else missing

    def get(self, sentence: Iterable[str]) -> Array:
        """The layers ``[n, L, D]`` of a sentence.

        Raises:
            UserError: if it is not a list of tokens, :meth:`fill` was not given it, or the encoder has changed since.
        """
        self._expect_same_encoder(exact=False)
        return self._layers_of(as_sentences([sentence])[0])

    def _layers_of(self, sentence: Sequence[str]) -> Array:
        key = self._streamed.get(tuple(sentence), b"") if self.state == "carry" else key_of(sentence)
        return self._stored(key, sentence)

    def _padded(self, sentences: Sentences) -> Tensor:
        n_tokens = max(map(len, sentences))
        layers = np.zeros((len(sentences), n_tokens, self.encoder.n_layers, self.encoder.dim), dtype=np.float32)
        for row, sentence in zip(layers, sentences, strict=True):
            row[: len(sentence)] = self._layers_of(sentence)
        return torch.from_numpy(layers).transpose(1, 2)

    @cached_property
    def _streamed(self) -> dict[tuple[str, ...], bytes]:
        """The key of each sentence of a stream."""
        return {}

    def _about(self) -> dict[str, Any]:
        warm = None
        if self.state == "warm" and isinstance(self.encoder, BiLM):
            self.encoder.expect_warm()
            warm = self.encoder.warm_digest
        return {"keep": "layers", "state": self.state, "warm": warm}

    def _compute(self, reader: Encoder, sentences: Sentences) -> list[Array]:
        return [layers.transpose(0, 1).float().cpu().numpy() for layers in self._layers(reader, sentences)]

    def _layers(self, reader: Encoder, sentences: Sentences) -> list[Tensor]:
        if self.state == "reset":
            return reader.layers(sentences)
        assert isinstance(reader, BiLM)  # see Store
        if self.state == "carry":  # one stream, in order
            return [reader.layers([sentence], state="carry")[0] for sentence in sentences]
        return reader.layers(sentences, state=self.state)
