"""What someone else may have put into a folder of the layer store: links, devices and files of any size."""

import shutil
import time
import tracemalloc

import pytest
import torch

from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.locks import claim

SENTENCES = [["a", "b"], ["c"]]


@pytest.fixture
def filled(tiny_bilm, tmp_path):
    LayerStore(tmp_path / "store", tiny_bilm, dtype="float32").fill(SENTENCES)
    (index,) = (tmp_path / "store").rglob("*.idx")
    return index


def refilled(tiny_bilm, tmp_path):
    """The numbers of a fresh look at the store, which take little memory and time."""
    tracemalloc.start()
    start = time.perf_counter()
    store = LayerStore(tmp_path / "store", tiny_bilm, dtype="float32")
    computed = store.fill(SENTENCES).computed
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 5
    assert peak < 50e6
    for sentence in SENTENCES:
        (expected,) = tiny_bilm.layers([sentence])
        torch.testing.assert_close(store.padded([sentence])[0], expected)
    return computed


@pytest.mark.parametrize("suffix", [".idx", ".bin"])
def test_a_link_is_not_followed(tiny_bilm, tmp_path, filled, suffix, capsys):
    path = filled.with_suffix(suffix)
    path.unlink()
    path.symlink_to("/dev/zero")
    assert refilled(tiny_bilm, tmp_path) == 3
    why = "is a link or no regular file" if suffix == ".idx" else "has damaged numbers"
    assert f"{why}; it is removed" in capsys.readouterr().err


def test_an_index_of_any_size_is_not_read(tiny_bilm, tmp_path, filled, capsys):
    with filled.open("r+b") as file:
        file.truncate(10**12)  # without taking room
    assert refilled(tiny_bilm, tmp_path) == 3
    assert "more than an index can have; it is removed" in capsys.readouterr().err


@pytest.mark.parametrize("header", [b"[" * 100_000, b"[1]", b'"version"', b'{"version": "' + b"x" * 1000 + b'"}'])
def test_a_header_of_any_kind_ends_in_a_sentence(tiny_bilm, tmp_path, filled, header, capsys):
    filled.write_bytes(header + b"\n")
    assert refilled(tiny_bilm, tmp_path) == 3
    message = capsys.readouterr().err
    assert "it is removed" in message
    assert len(message) < 500


@pytest.mark.parametrize("place", ["locks", "locks/use"])
def test_a_lock_that_is_a_link_is_replaced(tiny_bilm, tmp_path, filled, place):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "use").write_text("what the user has written")
    before = (elsewhere / "use").stat().st_mtime_ns
    link = filled.parent / place
    shutil.rmtree(filled.parent / "locks", ignore_errors=True)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere / place.removeprefix("locks").removeprefix("/"))
    assert refilled(tiny_bilm, tmp_path) == 0
    assert not link.is_symlink()
    assert (elsewhere / "use").stat().st_mtime_ns == before
    assert [path.name for path in elsewhere.iterdir()] == ["use"]


def test_a_claim_makes_no_file_elsewhere(tmp_path):
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "00").symlink_to(tmp_path / "elsewhere")
    lock = claim(tmp_path, "00")
    assert lock.is_of(tmp_path / "locks" / "00")
    assert claim(tmp_path, "00") is None
    assert not (tmp_path / "elsewhere").exists()
