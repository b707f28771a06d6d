"""Where in the shards the array of each key is: 32 bytes of memory a key, found by binary search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_KEY = "S16"  # bytes are compared as they are; zeros at the end count, since all keys have sixteen
_PLACE = np.dtype([("start", "<i8"), ("rows", "<i4"), ("shard", "<i4")])


class Place(NamedTuple):
    """The number of a shard, the first row of an array in it, and its rows."""

    shard: int
    start: int
    rows: int


class Index:
    """The places of any number of keys of sixteen bytes. Of a key that is added twice, the first place counts.

    What was added since the last lookup is sorted in at the next one.
    """

    def __init__(self) -> None:
        self._keys: NDArray[np.bytes_] = np.empty(0, _KEY)
        self._places: NDArray[Any] = np.empty(0, _PLACE)
        self._added: list[tuple[NDArray[np.bytes_], NDArray[Any]]] = []

    def add(self, shard: int, entries: NDArray[Any]) -> None:
        """Add the keys of a shard: entries with ``key``, ``start`` (the first row) and ``rows``."""
        places = np.empty(len(entries), _PLACE)
        places["start"], places["rows"], places["shard"] = entries["start"], entries["rows"], shard
        self._added.append((np.array(entries["key"]).view(_KEY), places))

    def find(self, key: bytes) -> Place | None:
        """The place of a key; None if it has none."""
        self._sort_in()
        first, behind = (int(self._keys.searchsorted(key, side)) for side in ("left", "right"))
        if first == behind:
            return None
        start, rows, shard = self._places[first].item()
        return Place(shard, start, rows)

    def contains(self, keys: Sequence[bytes]) -> NDArray[np.bool_]:
        """Which of some keys have a place, bool ``[len(keys)]``; much faster than one at a time."""
        self._sort_in()
        asked = np.frombuffer(b"".join(keys), _KEY)
        order = asked.argsort()  # neighbours are then searched for in the same memory
        asked, found = asked[order], np.zeros(len(keys), bool)
        found[order] = self._keys.searchsorted(asked) < self._keys.searchsorted(asked, "right")
        return found

    def __len__(self) -> int:
        """The number of places; a key that is in two shards counts twice."""
        return len(self._keys) + sum(len(keys) for keys, _ in self._added)

    def _sort_in(self) -> None:
        if not self._added:
            return
        keys = np.concatenate([self._keys, *(part for part, _ in self._added)])
        places = np.concatenate([self._places, *(part for _, part in self._added)])
        self._added = []
        order = keys.argsort(kind="stable")
        self._keys, self._places = keys[order], places[order]
