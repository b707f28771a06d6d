"""A store of all layers of each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.errors import UserError
from elmo_tasks.store.filling import Filling, SentencesByKey
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

    def get(self, sentence: Sequence[str]) -> Array:
        """The layers ``[n, L, D]`` of a sentence.

        Raises:
            UserError: if :meth:`fill` was not given it.
        """
        key = self._streamed.get(tuple(sentence), b"") if self.state == "carry" else key_of(sentence)
        return self._stored(key, sentence)

    def padded(self, sentences: Sentences) -> Tensor:
        """The layers of some sentences, float32 ``[B, L, T, D]``, zero on padding."""
        n_tokens = max(map(len, sentences))
        layers = np.zeros((len(sentences), n_tokens, self.encoder.n_layers, self.encoder.dim), dtype=np.float32)
        for row, sentence in zip(layers, sentences, strict=True):
            row[: len(sentence)] = self.get(sentence)
        return torch.from_numpy(layers).transpose(1, 2)

    @cached_property
    def _streamed(self) -> dict[tuple[str, ...], bytes]:
        """The key of each sentence of a stream."""
        return {}

    def _about(self) -> dict[str, Any]:
        if self.state != "reset" and not isinstance(self.encoder, BiLM):
            raise UserError(f"bilm.state={self.state}: only a biLM has states; leave bilm.state=reset")
        warm = self.encoder.warm_digest if isinstance(self.encoder, BiLM) and self.state == "warm" else None
        return {"keep": "layers", "state": self.state, "warm": warm}

    def _fill(self, filling: Filling, wanted: SentencesByKey) -> int:
        if self.state != "carry":
            return filling.fill(wanted)
        assert isinstance(self.encoder, BiLM)  # see _about
        self.encoder.reset_carried_state()
        return filling.fill_in_order(wanted)

    def _compute(self, sentences: Sentences) -> list[Array]:
        return [layers.transpose(0, 1).cpu().numpy() for layers in self._layers(sentences)]

    def _layers(self, sentences: Sentences) -> list[Tensor]:
        if self.state == "reset":
            return self.encoder.layers(sentences)
        assert isinstance(self.encoder, BiLM)  # see _about
        if self.state == "carry":  # one stream, in order
            return [self.encoder.layers([sentence], state="carry")[0] for sentence in sentences]
        return self.encoder.layers(sentences, state=self.state)
