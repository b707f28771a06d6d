"""Stores of random layers: a training step can be timed before the real layers are computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.shard import Array
from elmo_tasks.store.store import Filled, Store
from elmo_tasks.store.tokens import TokenStore

_ROWS = 4096


class RandomLayerStore(LayerStore):
    """Random layers in place of a :class:`LayerStore`'s; they are read and converted in the same way."""

    def __init__(self, store: LayerStore) -> None:
        self.__dict__.update(vars(store))
        rows = np.random.default_rng(0).standard_normal((_ROWS, *store.row), np.float32)
        self._rows = rows.astype(store.shards.dtype)

    def fill(self, sentences: Iterable[Iterable[str]]) -> Filled:
        """Nothing is computed."""
        return Filled()

    def _layers_of(self, sentence: Sequence[str]) -> Array:
        rows: Array = self._rows[np.arange(len(sentence)) % _ROWS]  # np.resize would copy all of them first
        return rows


class RandomTokenStore(TokenStore):
    """Random token layers in place of a :class:`TokenStore`'s; the LSTMs run on them."""

    def __init__(self, store: TokenStore) -> None:
        self.__dict__.update(vars(store))
        self._vector = torch.randn(1, *store.row)

    def fill(self, sentences: Iterable[Iterable[str]]) -> Filled:
        """Nothing is computed."""
        return Filled()

    def _vectors(self, words: Sequence[str]) -> Tensor:
        return self._vector.expand(len(words), -1).contiguous().to(self.encoder.encoder.characters.device)


def random_store(store: Store) -> Store:
    """A store of random layers with the shapes of another store's."""
    if isinstance(store, TokenStore):
        return RandomTokenStore(store)
    assert isinstance(store, LayerStore)  # there is no other kind
    return RandomLayerStore(store)
