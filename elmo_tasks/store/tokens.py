"""A store of the biLM's token layer alone, for texts whose layers would be too large to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.batch import pad_layers
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.store.filling import SentencesByKey
from elmo_tasks.store.shard import Array
from elmo_tasks.store.store import Sentences, Store, key_of


class TokenStore(Store):
    """The biLM's token layer ``[1, P]`` of each distinct word; the LSTMs run for every batch.

    ``carry`` is not possible here, since batches are not in reading order. Words are counted, not tokens.
    """

    encoder: BiLM
    work, unit = "biLM token layer", "words"

    @property
    def row(self) -> tuple[int, ...]:
        """``[P]``."""
        return (self.encoder.dim // 2,)

    def wanted(self, sentences: Sentences) -> SentencesByKey:
        """Key to word (a list of one), each once, in order."""
        words = dict.fromkeys([BEGIN_SENTENCE, END_SENTENCE, *(word for s in sentences for word in s)])
        return {key_of([word]): [word] for word in words}

    def _padded(self, sentences: Sentences) -> Tensor:
        return pad_layers(self.encoder.layers(sentences, state=self.state, encode=self._vectors))

    def _about(self) -> dict[str, Any]:
        if self.state == "carry":
            raise UserError("bilm.state=carry reads sentences in order: it needs bilm.store.keep=layers")
        return {"keep": "tokens"}

    def _compute(self, reader: Encoder, words: Sentences) -> list[Array]:
        assert isinstance(reader, BiLM)
        return list(reader.encode([word for (word,) in words]).unsqueeze(1).float().cpu().numpy())

    def _vectors(self, words: Sequence[str]) -> Tensor:
        rows = np.concatenate([self._stored(key_of([word]), [word]) for word in words]).astype(np.float32)
        return torch.from_numpy(rows).to(self.encoder.encoder.characters)
