"""What someone else may have put into a folder of the layer store: links, devices and files of any size."""

import time
import tracemalloc

import pytest
import torch

from elmo_tasks.store.layers import LayerStore

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
