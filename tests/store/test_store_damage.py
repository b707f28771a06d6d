"""A shard of the layer store that is damaged, or removed by another process, is computed again."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from stored import N_TOKENS, SENTENCES, assert_right

import elmo_tasks.store.shard as shard_module
import elmo_tasks.store.store as store_module
from elmo_tasks.errors import UserError
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.shard import VERSION, ShardIndex
from elmo_tasks.store.store import Filled, key_of


def change(path, edit):
    path.write_bytes(edit(path.read_bytes()))


def change_index(shard, edit, sealed=False):
    """Edit the entries of an index; if ``sealed``, with the digest that they have then."""
    head, _, body = shard.with_suffix(".idx").read_bytes().partition(b"\n")
    entries = np.frombuffer(body, shard_module._INDEX).copy()
    edit(entries)
    if sealed:
        header = json.loads(head)
        header["index"] = shard_module.digest_index(header, entries.tobytes())
        head = json.dumps(header).encode()
    shard.with_suffix(".idx").write_bytes(head + b"\n" + entries.tobytes())


def begin_one_row_later(entries):
    entries["start"][0] += 1


def begin_before_the_numbers(entries):
    entries["start"][0] = -1


def lose_a_row(entries):
    entries["rows"][0] -= 1


def have_fewer_rows_than_none(entries):
    entries["rows"][1] = -1


def have_rows_past_the_numbers(entries):
    entries["rows"][1] += 1


def flip_a_byte(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def as_version(n):
    return lambda data: data.replace(f'"version": {VERSION}'.encode(), f'"version": {n}'.encode())


def sealed(edit):
    return lambda shard: change_index(shard, edit, sealed=True)


INDEX, NUMBERS = "has a damaged index", "has damaged numbers"
DAMAGES = {
    "a number": (lambda shard: change(shard.with_suffix(".bin"), flip_a_byte), NUMBERS),
    "numbers cut": (lambda shard: change(shard.with_suffix(".bin"), lambda data: data[:-1]), NUMBERS),
    "no numbers in it": (lambda shard: change(shard.with_suffix(".bin"), lambda _: b""), NUMBERS),
    "numbers longer": (lambda shard: change(shard.with_suffix(".bin"), lambda data: 2 * data), NUMBERS),
    "numbers gone": (lambda shard: shard.with_suffix(".bin").unlink(), "has lost its numbers"),
    "a start": (lambda shard: change_index(shard, begin_one_row_later), INDEX),
    "a length": (lambda shard: change_index(shard, lose_a_row), INDEX),
    "index cut": (lambda shard: change(shard.with_suffix(".idx"), lambda data: data[:-1]), INDEX),
    "index short": (lambda shard: change(shard.with_suffix(".idx"), lambda data: data[:-32]), INDEX),
    "index empty": (lambda shard: change(shard.with_suffix(".idx"), lambda _: b""), INDEX),
    "garbage": (lambda shard: change(shard.with_suffix(".idx"), lambda _: bytes(range(256))), INDEX),
    "other JSON": (lambda shard: change(shard.with_suffix(".idx"), lambda _: b"[1, 2]\n"), INDEX),
    "negative start": (sealed(begin_before_the_numbers), "has an index of other numbers"),
    "negative length": (sealed(have_fewer_rows_than_none), "has an index of other numbers"),
    "rows past the end": (sealed(have_rows_past_the_numbers), "has an index of other numbers"),
    "older": (
        lambda shard: change(shard.with_suffix(".idx"), as_version(2)),
        rf"was written by version 2 of the layer store \(this is version {VERSION}\)",
    ),
}


@pytest.fixture
def two_shards(tiny_bilm, tmp_path):
    """A filled store's first shard, of the first two sentences and four tokens, without its suffix."""
    first = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    first.fill(SENTENCES[:2])
    [index] = first.shards.folder.glob("*.idx")
    LayerStore(tmp_path, tiny_bilm, dtype="float32").fill(SENTENCES)
    return index.with_suffix("")


def announced(capsys):
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("layer store: ")]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_shard_is_announced_removed_and_computed_again_once_and_no_other(
    tiny_bilm, tmp_path, two_shards, capsys, damage
):
    break_it, reason = DAMAGES[damage]
    break_it(two_shards)
    expected = rf"layer store: {two_shards}\.idx {reason}; it is removed, and what is needed of it is computed again"
    for filled in (Filled(computed=4, read=N_TOKENS - 4), Filled(computed=0, read=N_TOKENS)):
        store = LayerStore(tmp_path, tiny_bilm, dtype="float32", limit_gb=N_TOKENS * 3 * 12 * 4 / 1e9)
        assert store.fill(SENTENCES) == filled
        assert_right(store, SENTENCES)
        message = announced(capsys)
        assert len(message) == (filled.computed > 0)
        assert all(re.fullmatch(expected, line) for line in message)
        assert not list(two_shards.parent.glob(f"{two_shards.name}.*"))
        assert store.fill(SENTENCES).computed == 0
        assert not announced(capsys)


def test_every_byte_of_an_index_counts(tiny_bilm, tmp_path, two_shards):
    index = two_shards.with_suffix(".idx")
    whole, numbers = index.read_bytes(), two_shards.with_suffix(".bin").read_bytes()
    for place in range(len(whole)):
        index.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        two_shards.with_suffix(".bin").write_bytes(numbers)
        store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
        store.shards.scan()
        assert not index.exists()
        assert not store.shards.contains([key_of(sentence) for sentence in SENTENCES[:2]]).any()


def test_a_process_keeps_a_shard_that_it_has_read_when_another_removes_it(tiny_bilm, tmp_path, two_shards):
    reader = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    reader.fill(SENTENCES)
    two_shards.with_suffix(".idx").write_bytes(b"")
    LayerStore(tmp_path, tiny_bilm, dtype="float32").fill(SENTENCES)
    assert not two_shards.with_suffix(".bin").exists()
    assert_right(reader, SENTENCES)


@pytest.mark.parametrize("name", ["read", "map_numbers"])
def test_a_shard_that_another_process_removes_meanwhile_is_its_to_announce(
    tiny_bilm, tmp_path, capsys, monkeypatch, name
):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    read = getattr(ShardIndex, name)

    def after_it_is_gone(*args):
        for path in (*store.shards.folder.glob("*.idx"), *store.shards.folder.glob("*.bin")):
            path.unlink()
        return read(*args)

    with monkeypatch.context() as patch:
        patch.setattr(ShardIndex, name, after_it_is_gone)
        late = LayerStore(tmp_path, tiny_bilm, dtype="float32")
        late.shards.scan()
    assert late.fill(SENTENCES) == Filled(computed=N_TOKENS, read=0)
    assert_right(late, SENTENCES)
    assert not announced(capsys)


def test_a_bad_shard_in_a_folder_that_cannot_be_written_is_skipped(
    tiny_bilm, tmp_path, two_shards, capsys, monkeypatch
):
    two_shards.with_suffix(".bin").write_bytes(b"")

    def refuse(*_, **__):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        assert LayerStore(tmp_path, tiny_bilm, dtype="float32").fill(SENTENCES[2:]).computed == 0
    [line] = announced(capsys)
    assert "it cannot be removed (Read-only file system), and" in line


def test_an_index_that_cannot_be_read_is_an_error_and_stays(tiny_bilm, tmp_path, two_shards):
    index = two_shards.with_suffix(".idx")
    index.unlink()
    index.mkdir()
    with pytest.raises(UserError, match=rf"{index}: the layer store cannot be read \(Is a directory\)"):
        LayerStore(tmp_path, tiny_bilm, dtype="float32").fill(SENTENCES)
    assert two_shards.with_suffix(".bin").exists()


@pytest.mark.parametrize("unfinished", [(".idx",), (".bin", ".idx")])
def test_what_a_killed_writer_did_not_finish_is_computed_again(tiny_bilm, tmp_path, two_shards, capsys, unfinished):
    for suffix in unfinished:
        two_shards.with_suffix(suffix).rename(two_shards.with_suffix(f"{suffix}.tmp"))
    for filled in (Filled(computed=4, read=N_TOKENS - 4), Filled(computed=0, read=N_TOKENS)):
        store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
        assert store.fill(SENTENCES) == filled
        assert_right(store, SENTENCES)
    assert not announced(capsys)


def test_a_store_of_another_version_is_named_once_and_left_alone(tiny_bilm, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "VERSION", VERSION - 1)
        old = LayerStore(tmp_path, tiny_bilm, dtype="float32")
        old.fill(SENTENCES)
        LayerStore(tmp_path, tiny_bilm, state="carry").fill(SENTENCES)  # has nothing to do with it
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    capsys.readouterr()
    assert store.fill(SENTENCES).computed == N_TOKENS
    assert announced(capsys) == [
        f"layer store: {old.shards.folder} was written by version {VERSION - 1} of the layer store "
        f"(this is version {VERSION}); it is not read and can be removed"
    ]
    assert len(list(old.shards.folder.glob("*.*"))) == 3
    store.fill([*SENTENCES, ["new"]])
    assert not announced(capsys)
