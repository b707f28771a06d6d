"""The index of the shards against a dictionary."""

import numpy as np
import pytest

from elmo_tasks.store.index import Index, Place

KEYS_A_SHARD = 200


def as_entries(keys, starts, rows):
    entries = np.empty(len(keys), [("key", "V16"), ("start", "<i8"), ("rows", "<i8")])
    entries["key"], entries["start"], entries["rows"] = np.array(keys, dtype="V16"), starts, rows
    return entries


@pytest.fixture
def filled():
    """An index of several shards with repeated keys and shared halves, and the dictionary that it must equal."""
    rng = np.random.default_rng(1)
    index, expected = Index(), {}
    known = []
    for shard in range(7):
        keys = [rng.bytes(16) for _ in range(KEYS_A_SHARD)]
        keys += [key[:8] + rng.bytes(8) for key in keys[:20]]  # the same first half
        keys += known[: 10 * shard]
        known += keys
        rows = rng.integers(0, 9, len(keys))
        starts = rows.cumsum() - rows
        index.add(shard, as_entries(keys, starts, rows))
        for key, start, n in zip(keys, starts.tolist(), rows.tolist(), strict=True):
            expected.setdefault(key, Place(shard, start, n))
        if shard == 3:
            assert index.find(keys[0]) is not None  # sorted in here, and added to afterwards
    return index, expected


def test_each_key_has_the_place_it_was_first_added_with(filled):
    index, expected = filled
    assert {key: index.find(key) for key in expected} == expected


def test_keys_that_were_not_added_have_no_place(filled):
    index, expected = filled
    key = next(iter(expected))
    for other in (bytes(16), b"\xff" * 16, key[:8] + bytes(8), bytes(8) + key[8:], np.random.default_rng(2).bytes(16)):
        assert index.find(other) is None


def test_many_keys_at_once_are_found_as_each_by_itself(filled):
    index, expected = filled
    rng = np.random.default_rng(3)
    asked = [*expected, *(rng.bytes(16) for _ in range(50)), *(key[:8] + rng.bytes(8) for key in expected)]
    assert index.contains(asked).tolist() == [index.find(key) is not None for key in asked]


def test_an_empty_index_finds_nothing():
    assert Index().find(bytes(16)) is None
    assert Index().contains([bytes(16)]).tolist() == [False]
    assert Index().contains([]).tolist() == []


def test_a_key_takes_32_bytes():
    index = Index()
    index.add(0, as_entries([np.random.default_rng(1).bytes(16) for _ in range(1000)], np.arange(1000), 1))
    index.find(bytes(16))
    assert index._keys.nbytes + index._places.nbytes == 32_000
