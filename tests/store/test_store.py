import errno
import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from stored import N_TOKENS, SENTENCES, TOLERANCE, assert_right

import elmo_tasks.store.shard as shard_module
import elmo_tasks.store.store as store_module
from elmo_tasks.bilm import BiLM
from elmo_tasks.errors import UserError
from elmo_tasks.store import locks
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.shard import readable_indexes
from elmo_tasks.store.store import Filled
from elmo_tasks.store.tokens import TokenStore
from elmo_tasks.store.unfinished import begin, remove_unfinished


@pytest.fixture
def computed(tiny_bilm, monkeypatch):
    """The sentences that the biLM is asked for, one list a call."""
    calls, layers = [], tiny_bilm.layers
    monkeypatch.setattr(tiny_bilm, "layers", lambda s, **kwargs: calls.append(list(s)) or layers(s, **kwargs))
    return calls


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_what_is_read_is_what_the_bilm_gives_up_to_rounding(tiny_bilm, tmp_path, dtype):
    store = LayerStore(tmp_path, tiny_bilm, dtype=dtype)
    assert store.fill(SENTENCES) == Filled(computed=N_TOKENS, read=0)
    assert_right(store, SENTENCES, dtype)


def test_a_second_fill_computes_nothing(tiny_bilm, tmp_path, computed):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    computed.clear()
    for again in (store, LayerStore(tmp_path, tiny_bilm, dtype="float32")):
        assert again.fill(SENTENCES[::-1]) == Filled(computed=0, read=N_TOKENS)
        assert computed == []
        assert_right(again, SENTENCES)


def test_only_what_is_new_is_computed_and_duplicates_once(tiny_bilm, tmp_path, computed):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    assert store.fill([SENTENCES[0], SENTENCES[1], SENTENCES[0]]) == Filled(computed=4, read=0)
    assert store.fill([SENTENCES[2], *SENTENCES[:2], SENTENCES[2]]) == Filled(computed=2, read=4)
    assert computed == [SENTENCES[:2], [SENTENCES[2]]]
    assert_right(store, SENTENCES[:3])


def test_shards_split_the_sentences_and_change_nothing(tiny_bilm, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_SHARD_TOKENS", 4)
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    shards = [path.stat().st_size // store.shards.row_bytes for path in store.shards.folder.glob("*.bin")]
    assert sum(shards) == N_TOKENS
    assert max(shards) <= 4
    assert len(shards) > 2
    assert_right(store, SENTENCES)


def test_shards_of_wide_layers_hold_fewer_sentences(tiny_bilm, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_SHARD_FLOATS", 4 * tiny_bilm.n_layers * tiny_bilm.dim)
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    shards = [path.stat().st_size // store.shards.row_bytes for path in store.shards.folder.glob("*.bin")]
    assert sum(shards) == N_TOKENS
    assert max(shards) <= 4
    assert_right(store, SENTENCES)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_layers_that_are_not_finite_are_not_stored(tiny_bilm, tmp_path, monkeypatch, value):
    layers = [torch.zeros(tiny_bilm.n_layers, 3, tiny_bilm.dim)]
    layers[0][1, 2, 0] = value
    monkeypatch.setattr(tiny_bilm, "layers", lambda sentences: layers)
    store = LayerStore(tmp_path, tiny_bilm)
    with pytest.raises(UserError, match=r"^a layer holds numbers that are not finite$"):
        store.fill(SENTENCES[:1])
    assert {path.name for path in store.shards.folder.iterdir()} == {"about.json", "locks"}


def test_token_boundaries_count(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill([["ab", "c"]])
    assert store.fill([["a", "bc"]]).computed == 2
    assert_right(store, [["ab", "c"], ["a", "bc"]])


STRANGE = [["../../etc", "/"], ["a\nb", "c"], ["a", "b\nc"], ["a\u2028b\r", "\t"], ["\ud800", "x"], ["%s{}", ".."]]


def test_strange_tokens_stay_apart_and_out_of_paths(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path / "store", tiny_bilm, dtype="float32")
    assert store.fill(STRANGE).computed == 12
    assert_right(store, STRANGE)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_token_with_a_nul_is_not_two_tokens(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill([["a\0b"], ["a", "b"]])
    assert len(store.get(["a\0b"])) == 1
    assert len(store.get(["a", "b"])) == 2


def test_weights_state_warm_text_and_dtype_each_have_a_folder_of_their_own(tiny_bilm, tiny_options, shake, tmp_path):
    folders = [LayerStore(tmp_path, tiny_bilm, state=state).shards.folder for state in ("reset", "carry")]
    for text in ([["a"]], [["b"]]):
        tiny_bilm.warm_up(text)
        folders.append(LayerStore(tmp_path, tiny_bilm, state="warm").shards.folder)
    folders.append(LayerStore(tmp_path, tiny_bilm, dtype="float32").shards.folder)
    folders.append(LayerStore(tmp_path, shake(BiLM(tiny_options), seed=2)).shards.folder)
    assert len(set(folders)) == 6
    assert LayerStore(tmp_path, tiny_bilm).shards.folder == folders[0]


def test_warm_layers_are_stored_as_warm(tiny_bilm, tmp_path):
    tiny_bilm.warm_up([["some", "text"]])
    store = LayerStore(tmp_path, tiny_bilm, state="warm", dtype="float32")
    store.fill(SENTENCES)
    for sentence, expected in zip(SENTENCES, tiny_bilm.layers(SENTENCES, state="warm"), strict=True):
        np.testing.assert_allclose(store.get(sentence), expected.transpose(0, 1).numpy(), **TOLERANCE["float32"])


def test_carry_stores_one_stream_and_a_longer_one_is_run_from_its_start(tiny_bilm, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_SHARD_TOKENS", 4)
    stream = [tiny_bilm.layers([sentence], state="carry")[0].transpose(0, 1).numpy() for sentence in SENTENCES]
    for n in (2, 5, 5):
        store = LayerStore(tmp_path, tiny_bilm, state="carry", dtype="float32")
        filled = store.fill(SENTENCES[:n])
        for sentence, expected in zip(SENTENCES[:n], stream[:n], strict=True):
            np.testing.assert_allclose(store.get(sentence), expected, **TOLERANCE["float32"])
    assert filled == Filled(computed=0, read=N_TOKENS)
    assert sum(index.entries["rows"].sum() for index in readable_indexes(store.shards.folder)) == N_TOKENS  # none twice
    store.fill(SENTENCES[1:])
    other = LayerStore(tmp_path, tiny_bilm, state="carry", dtype="float32")
    other.fill(SENTENCES[1:])
    reset = tiny_bilm.layers([SENTENCES[1]])[0].transpose(0, 1).numpy()
    np.testing.assert_allclose(other.get(SENTENCES[1]), reset, **TOLERANCE["float32"])


@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.parametrize("make_store", [LayerStore, TokenStore])
def test_words_that_are_too_long_are_announced_once(tiny_bilm, tmp_path, capsys, recwarn, make_store, progress):
    store = make_store(tmp_path, tiny_bilm, dtype="float32", progress=progress)
    store.fill([["short", "a" * 48]])
    assert "truncated" not in capsys.readouterr().err
    for _ in range(2):
        store.fill([["b" * 70, "short"], ["b" * 70, "c" * 49]])
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "truncated" in line]
    assert line == f"layer store: words longer than 48 bytes are truncated: 2, such as '{'b' * 60}'"
    store.padded([["b" * 70, "short"]])
    assert not recwarn.list


def test_a_failed_write_leaves_no_shard_and_names_the_option(tiny_bilm, tmp_path, monkeypatch):
    store = LayerStore(tmp_path, tiny_bilm)

    def disk_full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shard_module.os, "fsync", disk_full)
        with pytest.raises(UserError, match=r"about\.json: cannot be written \(No space left on .* bilm\.store\.dir"):
            store.fill(SENTENCES)
    store.shards.reserve(N_TOKENS, limit_gb=1)
    with monkeypatch.context() as patch:
        patch.setattr(shard_module.os, "fsync", disk_full)
        with pytest.raises(UserError, match=r"bilm\.store\.dir.*No space left"):
            store.fill(SENTENCES)
    assert {path.name for path in store.shards.folder.iterdir()} <= {"about.json", "locks"}
    assert store.fill(SENTENCES).computed == N_TOKENS


def test_files_of_killed_writers_are_removed_at_once_and_those_of_a_running_one_stay(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm)
    store.fill(SENTENCES[:1])
    folder = store.shards.folder
    for name in ("0a.bin.tmp", "0b.bin.tmp", "0b.idx.tmp", "0c.bin", "0d.idx.tmp", ".about.json.0123456789abcdef.tmp"):
        (folder / name).write_bytes(b"unfinished")
    [whole] = (path for path in folder.glob("*.bin") if path.with_suffix(".idx").exists())
    written, lock = begin(folder)  # a flock is that of an open file: this process counts as another one
    store.fill(SENTENCES)
    assert not {path.name for path in folder.glob("0[abcd].*")}
    assert {path.name for path in folder.rglob("*.tmp")} == {written.name}
    assert whole.exists()
    lock.release()
    remove_unfinished(folder, 3600)
    assert not list(folder.rglob("*.tmp"))


def test_without_locks_only_old_files_of_killed_writers_are_removed(tiny_bilm, tmp_path, monkeypatch):
    store = LayerStore(tmp_path, tiny_bilm)
    store.fill(SENTENCES[:1])
    for name in ("0a.bin.tmp", "0b.bin.tmp", "0c.bin", "0d.bin"):
        (store.shards.folder / name).write_bytes(b"unfinished")
    for name in ("0a.bin.tmp", "0c.bin"):
        os.utime(store.shards.folder / name, (1e9, 1e9))
    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    store.fill(SENTENCES)
    assert {path.name for path in store.shards.folder.glob("0[abcd].bin*")} == {"0b.bin.tmp", "0d.bin"}


def no_locks(*_) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def fill_in_a_process(weights: Path, root: Path, barrier, answers) -> None:
    torch.set_num_threads(1)
    store = LayerStore(root, BiLM.load(weights), dtype="float32")
    barrier.wait(300)
    for k in range(len(SENTENCES)):  # several shards of each process
        store.fill(SENTENCES[: k + 1])
    answers.put([np.array(store.get(sentence)) for sentence in SENTENCES])


def test_two_processes_fill_one_store_and_both_read_right(tiny_bilm, tmp_path):
    tiny_bilm.save(tmp_path / "bilm")
    spawn = multiprocessing.get_context("spawn")
    barrier, answers = spawn.Barrier(2), spawn.Queue()
    arguments = (tmp_path / "bilm", tmp_path / "store", barrier, answers)
    processes = [spawn.Process(target=fill_in_a_process, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=300) for _ in processes]
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    for sentence, *both in zip(SENTENCES, *found, strict=True):
        expected = tiny_bilm.layers([sentence])[0].transpose(0, 1).numpy()
        for layers in both:
            np.testing.assert_allclose(layers, expected, **TOLERANCE["float32"])
    assert not list((tmp_path / "store").glob("**/*.tmp"))


def test_a_store_sees_what_another_wrote_meanwhile(tiny_bilm, tmp_path):
    one, other = (LayerStore(tmp_path, tiny_bilm, dtype="float32") for _ in range(2))
    one.fill(SENTENCES[:2])
    other.fill(SENTENCES[1:])
    assert one.fill(SENTENCES) == Filled(computed=0, read=N_TOKENS)
    assert_right(one, SENTENCES)


def test_the_limit_counts_what_is_there_and_is_checked_before_anything_is_written(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    assert store.shards.row_bytes == 3 * 12 * 4
    store.fill(SENTENCES[:4])
    before = sorted(store.shards.folder.iterdir())
    store.limit_gb = (N_TOKENS * store.shards.row_bytes - 1) / 1e9
    with pytest.raises(UserError, match=r"bilm\.store\.limit_gb"):
        store.fill(SENTENCES)
    assert sorted(store.shards.folder.iterdir()) == before
    store.limit_gb = N_TOKENS * store.shards.row_bytes / 1e9
    assert store.fill(SENTENCES).computed == 3


def test_beyond_the_limit_not_even_a_folder_is_made(tiny_bilm, tmp_path):
    with pytest.raises(UserError, match=r"11 tokens .* bilm\.store\.limit_gb=1e-09"):
        LayerStore(tmp_path / "store", tiny_bilm, limit_gb=1e-9).fill(SENTENCES)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_with_too_little_room_is_refused(tiny_bilm, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(UserError, match=r"only 0\.0 MB are free; set bilm\.store\.dir"):
        LayerStore(tmp_path, tiny_bilm).fill(SENTENCES)


@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_cannot_be_written_is_named(tiny_bilm, tmp_path, inner):
    store = LayerStore(tmp_path / "store", tiny_bilm)
    in_the_way = store.shards.folder if inner else tmp_path / "store"
    in_the_way.parent.mkdir(exist_ok=True)
    in_the_way.write_text("a file")
    with pytest.raises(UserError, match=rf"bilm\.store\.dir={tmp_path / 'store'}: .*cannot be written"):
        store.fill(SENTENCES)


@pytest.mark.parametrize(("kind", "state"), [(LayerStore, "reset"), (LayerStore, "carry"), (TokenStore, "reset")])
def test_a_sentence_that_the_store_was_not_given_is_named(tiny_bilm, tmp_path, kind, state):
    store = kind(str(tmp_path), tiny_bilm, state=state)
    store.fill([["some", "text"]])
    with pytest.raises(UserError, match=r"^'(other text|other)' is not in the layer store; call fill with it first$"):
        store.padded([["other", "text"]])


def test_sentences_are_padded_with_zeros_to_the_longest(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    padded = store.padded(SENTENCES)
    assert padded.shape == (5, 3, 3, 12)
    assert padded.dtype == torch.float32
    for row, sentence in zip(padded, SENTENCES, strict=True):
        torch.testing.assert_close(row[:, : len(sentence)], tiny_bilm.layers([sentence])[0], rtol=0, atol=1e-5)
        assert not row[:, len(sentence) :].any()


def test_layers_of_another_precision_lie_elsewhere(tiny_bilm, tmp_path):
    folders = set()
    for precision in ("float32", "bfloat16", "int8"):
        tiny_bilm.precision = precision
        folders |= {kind(tmp_path, tiny_bilm).shards.folder for kind in (LayerStore, TokenStore)}
    assert len(folders) == 6


class TestTokenStore:
    @pytest.fixture
    def encoded(self, tiny_bilm, monkeypatch):
        """The words that the token encoder is asked for."""
        words, encode = [], tiny_bilm.encoder.encode
        monkeypatch.setattr(tiny_bilm.encoder, "encode", lambda w: words.extend(w) or encode(w))
        return words

    @pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 0.02)])
    @pytest.mark.parametrize("state", ["reset", "warm"])
    def test_it_gives_the_layers_of_the_bilm_and_zeros_on_padding(self, tiny_bilm, tmp_path, state, dtype, tolerance):
        tiny_bilm.warm_up([["some", "text"]])
        store = TokenStore(tmp_path, tiny_bilm, state=state, dtype=dtype)
        store.fill(SENTENCES)
        padded = store.padded(SENTENCES)
        assert padded.shape == (5, 3, 3, 12)
        for row, sentence in zip(padded, SENTENCES, strict=True):
            [expected] = tiny_bilm.layers([sentence], state=state)
            torch.testing.assert_close(row[:, : len(sentence)], expected, rtol=0, atol=tolerance)
            assert not row[:, len(sentence) :].any()

    def test_each_word_is_encoded_once_whatever_its_sentences(self, tiny_bilm, tmp_path, encoded):
        store = TokenStore(tmp_path, tiny_bilm)
        assert store.fill([["a", "b"], ["b", "a", "a"]]) == Filled(computed=4, read=0)  # with both sentence marks
        assert store.fill([["c", "a"]]) == Filled(computed=1, read=3)
        assert TokenStore(tmp_path, tiny_bilm).fill([["a", "b", "c"]]) == Filled(computed=0, read=5)
        store.padded([["a", "b"], ["c"]])
        assert sorted(encoded) == ["</S>", "<S>", "a", "b", "c"]

    def test_it_keeps_out_of_the_folder_of_whole_layers(self, tiny_bilm, tmp_path):
        token_store, layer_store = TokenStore(tmp_path, tiny_bilm), LayerStore(tmp_path, tiny_bilm)
        assert token_store.shards.folder != layer_store.shards.folder
        assert token_store.shards.row_bytes == 6 * 2

    def test_the_limit_is_observed(self, tiny_bilm, tmp_path):
        with pytest.raises(UserError, match=r"^12 words need .* bilm\.store\.limit_gb"):
            TokenStore(tmp_path / "store", tiny_bilm, limit_gb=1e-9).fill(SENTENCES)
        assert list(tmp_path.iterdir()) == []

    def test_carry_is_refused(self, tiny_bilm, tmp_path):
        with pytest.raises(UserError, match=r"bilm\.state=carry .* bilm\.store\.keep=layers"):
            TokenStore(tmp_path, tiny_bilm, state="carry")


def test_a_sentence_that_comes_again_in_a_stream_keeps_its_first_layers(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm, state="carry", dtype="float32")
    store.fill([["a", "b"], ["c"], ["a", "b"]])
    first = tiny_bilm.layers([["a", "b"]])[0].transpose(0, 1).numpy()  # the first of a stream starts from zeros
    np.testing.assert_allclose(store.get(["a", "b"]), first, rtol=1e-5, atol=1e-5)
