"""Where in the shards the array of each key is: 32 bytes of memory a key, found by binary search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_PLACE = np.dtype([("low", ">u8"), ("start", "<i8"), ("rows", "<i4"), ("shard", "<i4")])


class Place(NamedTuple):
    """The number of a shard, the first row of an array in it, and its rows."""

    shard: int
    start: int
    rows: int


class Index:
    """The places of any number of keys of sixteen bytes. Of a key that is added twice, the first place counts.

    Keys are sorted by their first half; what was added since the last lookup is sorted in at the next one.
    """

    def __init__(self) -> None:
        self._high: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._places: NDArray[Any] = np.empty(0, _PLACE)
        self._added: list[tuple[NDArray[np.uint64], NDArray[Any]]] = []

    def add(self, shard: int, keys: NDArray[np.void], starts: NDArray[Any], rows: NDArray[Any]) -> None:
        """Add the keys ``[n]`` of a shard with the first row and the number of rows of each."""
        halves = np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)
        places = np.empty(len(halves), _PLACE)
        places["low"], places["start"], places["rows"], places["shard"] = halves[:, 1], starts, rows, shard
        self._added.append((halves[:, 0].astype(np.uint64), places))

    def find(self, key: bytes) -> Place | None:
        """The place of a key; None if it has none."""
        self._sort_in()
        high, low = int.from_bytes(key[:8], "big"), int.from_bytes(key[8:], "big")
        k = int(np.searchsorted(self._high, np.uint64(high)))
        while k < len(self._high) and self._high[k] == high:
            place = self._places[k]
            if place["low"] == low:
                return Place(int(place["shard"]), int(place["start"]), int(place["rows"]))
            k += 1
        return None

    def contains(self, keys: Sequence[bytes]) -> NDArray[np.bool_]:
        """Which of some keys have a place, bool ``[len(keys)]``; much faster than one at a time."""
        self._sort_in()
        halves = np.frombuffer(b"".join(keys), ">u8").reshape(-1, 2).astype(np.uint64)
        found = np.zeros(len(halves), bool)
        if not len(self._high):
            return found
        at = np.searchsorted(self._high, halves[:, 0])
        pending = np.arange(len(halves))
        while len(pending):  # once, except for keys that share their first half
            pending = pending[at[pending] < len(self._high)]
            pending = pending[self._high[at[pending]] == halves[pending, 0]]
            same = self._places["low"][at[pending]] == halves[pending, 1]
            found[pending[same]] = True
            pending = pending[~same]
            at[pending] += 1
        return found

    def __len__(self) -> int:
        """The number of places; a key that is in two shards counts twice."""
        return len(self._high) + sum(len(high) for high, _ in self._added)

    def _sort_in(self) -> None:
        if not self._added:
            return
        high = np.concatenate([self._high, *(part for part, _ in self._added)])
        places = np.concatenate([self._places, *(part for _, part in self._added)])
        self._added = []
        order = high.argsort(kind="stable")
        self._high, self._places = high[order], places[order]
