"""Two processes share the filling of one store, and one takes over where the other is killed."""

import fcntl
import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import elmo_tasks.store.store as store_module
from elmo_tasks.bilm import BiLM
from elmo_tasks.store.filling import N_PARTS
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.locks import claim, locks_folder, mark_in_use, nobody_uses
from elmo_tasks.store.store import Filled
from elmo_tasks.store.tokens import TokenStore

SENTENCES = [[f"w{k}", f"v{k % 7}", "."] for k in range(150)]
N_TOKENS = 450
SPAWN = multiprocessing.get_context("spawn")


def assert_right(store, bilm):
    for sentence in SENTENCES:
        expected = bilm.layers([sentence])[0].transpose(0, 1).numpy()
        np.testing.assert_allclose(store.get(sentence), expected, rtol=0, atol=1e-5)


def fill_in_a_process(weights: Path, root: Path, seconds: float, barrier, answers) -> None:
    torch.set_num_threads(1)
    store_module._SHARD_TOKENS = 30
    bilm = BiLM.load(weights)
    layers = bilm.layers
    read: list[tuple[str, ...]] = []

    def slowly(sentences, **kwargs):
        read.extend(map(tuple, sentences))
        time.sleep(seconds)
        return layers(sentences, **kwargs)

    bilm.layers = slowly
    store = LayerStore(root, bilm, dtype="float32")
    barrier.wait(300)
    filled = store.fill(SENTENCES)
    answers.put((filled.computed, filled.read, read))


def started(tiny_bilm, tmp_path, seconds):
    tiny_bilm.save(tmp_path / "bilm")
    barrier, answers = SPAWN.Barrier(2), SPAWN.Queue()
    arguments = [(tmp_path / "bilm", tmp_path / "store", each, barrier, answers) for each in seconds]
    processes = [SPAWN.Process(target=fill_in_a_process, args=each) for each in arguments]
    for process in processes:
        process.start()
    return processes, answers, barrier  # which must outlive their start


@pytest.mark.slow
def test_no_sentence_is_computed_by_both(tiny_bilm, tmp_path):
    processes, answers, _barrier = started(tiny_bilm, tmp_path, (0.1, 0.1))
    (one, one_read, first), (other, other_read, second) = (answers.get(timeout=300) for _ in processes)
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    assert one + other == one_read + other_read == N_TOKENS
    assert min(one, other) > N_TOKENS / 10  # they share the work
    assert not set(first) & set(second)
    store = LayerStore(tmp_path / "store", tiny_bilm, dtype="float32")
    assert store.fill(SENTENCES) == Filled(computed=0, read=N_TOKENS)
    assert_right(store, tiny_bilm)


@pytest.mark.slow
def test_what_a_killed_process_had_claimed_is_computed_by_the_other(tiny_bilm, tmp_path):
    processes, answers, _barrier = started(tiny_bilm, tmp_path, (1e6, 0.05))  # the first one never writes a shard
    deadline = time.monotonic() + 300
    while len(list((tmp_path / "store").glob("*/*.idx"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(processes[0].pid, signal.SIGKILL)
    computed, read, _ = answers.get(timeout=300)
    processes[1].join(60)
    assert (computed, read) == (N_TOKENS, 0)
    store = LayerStore(tmp_path / "store", tiny_bilm, dtype="float32")
    assert store.fill(SENTENCES) == Filled(computed=0, read=N_TOKENS)
    assert_right(store, tiny_bilm)


def test_a_process_that_finds_everything_claimed_waits_and_says_so(tiny_bilm, tmp_path, monkeypatch, capsys):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES[:1])
    locks = [claim(store.shards.folder, f"{part:02d}") for part in range(N_PARTS)]
    slept = []

    def give_up_in_time(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            for lock in locks:
                lock.release()

    monkeypatch.setattr(time, "sleep", give_up_in_time)
    assert store.fill(SENTENCES).computed == N_TOKENS - 3
    assert len(slept) == 3
    [line] = [line for line in "".join(capsys.readouterr()).splitlines() if "waiting" in line]
    assert line == f"layer store: {N_TOKENS - 3} tokens are being computed by another process; waiting for it"


def test_a_stream_is_computed_by_one_process_while_others_wait(tiny_bilm, tmp_path, monkeypatch):
    one = LayerStore(tmp_path, tiny_bilm, state="carry", dtype="float32")
    one.fill(SENTENCES[:1])
    lock = claim(one.shards.folder, "stream")
    other = LayerStore(tmp_path, tiny_bilm, state="carry", dtype="float32")

    def meanwhile(seconds: float) -> None:
        lock.release()
        one.fill(SENTENCES)  # which has the lock to itself, and writes the whole stream

    monkeypatch.setattr(time, "sleep", meanwhile)
    assert other.fill(SENTENCES) == Filled(computed=0, read=N_TOKENS)
    assert other.get(SENTENCES[5]).shape == (3, 3, 12)


def test_words_are_shared_in_the_same_way(tiny_bilm, tmp_path):
    store = TokenStore(tmp_path, tiny_bilm)
    assert store.fill(SENTENCES).computed == len({word for s in SENTENCES for word in s}) + 2
    assert sorted(path.name for path in locks_folder(store.shards.folder).iterdir())[-1] == "use"


def test_a_folder_on_a_disk_without_locks_is_filled_too(tiny_bilm, tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("elmo_tasks.store.locks.fcntl.flock", no_locks)
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    assert store.fill(SENTENCES) == Filled(computed=N_TOKENS, read=0)
    assert_right(store, tiny_bilm)


@pytest.mark.parametrize("made_again", [False, True])
def test_a_folder_that_is_removed_while_its_lock_is_waited_for_is_not_in_use(tmp_path, monkeypatch, made_again):
    folder = tmp_path / "store"
    folder.mkdir()
    flock = fcntl.flock

    def wait_for_prune(descriptor, kind):
        monkeypatch.setattr(fcntl, "flock", flock)
        shutil.rmtree(folder)
        if made_again:
            folder.mkdir()
        flock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", wait_for_prune)
    lock = mark_in_use(folder)
    assert (lock is not None) == made_again
    if made_again:
        with nobody_uses(folder) as free:
            assert not free


def test_a_folder_is_in_use_as_long_as_one_of_its_users_is_there(tmp_path):
    one, other = mark_in_use(tmp_path), mark_in_use(tmp_path)
    one.release()
    with nobody_uses(tmp_path) as free:
        assert not free
    other.release()
    with nobody_uses(tmp_path) as free:
        assert free


@pytest.mark.parametrize(("shard_tokens", "n_sentences"), [(7, 60), (30, 150), (100, 150)])
def test_a_killed_filling_leaves_the_same_bytes_as_an_undisturbed_one(
    tiny_bilm, tmp_path, monkeypatch, shard_tokens, n_sentences
):
    sentences = SENTENCES[:n_sentences]
    monkeypatch.setattr(store_module, "_SHARD_TOKENS", shard_tokens)

    def stored(folder):
        store = LayerStore(folder, tiny_bilm, dtype="float32")
        assert store.fill(sentences).computed == 0
        return [store.get(sentence).tobytes() for sentence in sentences]

    LayerStore(tmp_path / "whole", tiny_bilm, dtype="float32").fill(sentences)
    whole = LayerStore(tmp_path / "whole", tiny_bilm, dtype="float32")
    n_shards = len(list((tmp_path / "whole").rglob("*.idx")))
    assert n_shards > 3
    for n_written in range(1, n_shards, 2):
        store = LayerStore(tmp_path / f"killed-{n_written}", tiny_bilm, dtype="float32")
        append, left = store.shards.append, iter(range(n_written))

        def killed(*shard, append=append, left=left):
            if next(left, None) is None:
                raise KeyboardInterrupt
            append(*shard)

        store.shards.append = killed
        with pytest.raises(KeyboardInterrupt):
            store.fill(sentences)
        LayerStore(store.shards.folder.parent, tiny_bilm, dtype="float32").fill(sentences)
        assert stored(store.shards.folder.parent) == stored(whole.shards.folder.parent)
