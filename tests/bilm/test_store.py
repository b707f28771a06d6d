import hashlib
import json
import multiprocessing
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import elmo_tasks.bilm.shard as shard_module
import elmo_tasks.bilm.shards as shards_module
import elmo_tasks.bilm.store as store_module
from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.shard import VERSION
from elmo_tasks.bilm.store import Filled, LayerStore, TokenStore
from elmo_tasks.errors import UserError

SENTENCES = [["the", "cat", "sat"], ["a"], ["ab", "c"], ["a", "bc"], ["l'", "été", "日本"]]
N_TOKENS = 11
TOLERANCE = {"float16": {"rtol": 2**-11, "atol": 1e-6}, "float32": {"rtol": 0, "atol": 1e-5}}


@pytest.fixture
def computed(tiny_bilm, monkeypatch):
    """The sentences that the biLM is asked for, one list a call."""
    calls, layers = [], tiny_bilm.layers
    monkeypatch.setattr(tiny_bilm, "layers", lambda s, **kwargs: calls.append(list(s)) or layers(s, **kwargs))
    return calls


def assert_right(store, sentences, dtype="float32"):
    for sentence in sentences:
        expected = BiLM.layers(store.encoder, [sentence])[0].transpose(0, 1).numpy()
        found = store.get(sentence)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, **TOLERANCE[dtype])


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
    assert sorted(shards) == [3, 4, 4]
    assert_right(store, SENTENCES)


def test_shards_of_wide_layers_hold_fewer_sentences(tiny_bilm, tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_SHARD_FLOATS", 4 * tiny_bilm.n_layers * tiny_bilm.dim)
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    assert len(list(store.shards.folder.glob("*.bin"))) == 3
    assert_right(store, SENTENCES)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_layers_that_are_not_finite_are_not_stored(tiny_bilm, tmp_path, monkeypatch, value):
    layers = [torch.zeros(tiny_bilm.n_layers, 3, tiny_bilm.dim)]
    layers[0][1, 2, 0] = value
    monkeypatch.setattr(tiny_bilm, "layers", lambda sentences: layers)
    store = LayerStore(tmp_path, tiny_bilm)
    with pytest.raises(UserError, match=r"^a layer holds numbers that are not finite$"):
        store.fill(SENTENCES[:1])
    assert [path.name for path in store.shards.folder.iterdir()] == ["about.json"]


def test_token_borders_count(tiny_bilm, tmp_path):
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
    store.fill(SENTENCES[1:])
    other = LayerStore(tmp_path, tiny_bilm, state="carry", dtype="float32")
    other.fill(SENTENCES[1:])
    reset = tiny_bilm.layers([SENTENCES[1]])[0].transpose(0, 1).numpy()
    np.testing.assert_allclose(other.get(SENTENCES[1]), reset, **TOLERANCE["float32"])


@pytest.mark.parametrize("progress", [True, False])
@pytest.mark.parametrize("store_of", [LayerStore, TokenStore])
def test_words_that_lose_their_end_are_announced_once(tiny_bilm, tmp_path, capsys, recwarn, store_of, progress):
    store = store_of(tmp_path, tiny_bilm, dtype="float32", progress=progress)
    store.fill([["short", "a" * 48]])
    assert "lose their end" not in capsys.readouterr().out
    for _ in range(2):
        store.fill([["b" * 70, "short"], ["b" * 70, "c" * 49]])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "lose their end" in line]
    assert line == f"layer store: words longer than 48 bytes, which lose their end: 2, such as '{'b' * 60}'"
    store.padded([["b" * 70, "short"]])
    assert not recwarn.list


def change(path, edit):
    path.write_bytes(edit(path.read_bytes()))


def change_index(shard, edit, sealed=False):
    """Edit the entries of an index; if ``sealed``, with the digest that they have then."""
    head, _, body = shard.with_suffix(".idx").read_bytes().partition(b"\n")
    entries = np.frombuffer(body, shard_module._INDEX).copy()
    edit(entries)
    if sealed:
        head = json.dumps({**json.loads(head), "index": hashlib.sha256(entries.tobytes()).hexdigest()}).encode()
    shard.with_suffix(".idx").write_bytes(head + b"\n" + entries.tobytes())


def begin_one_row_later(entries):
    entries["start"][0] += 1


def begin_before_the_numbers(entries):
    entries["start"][0] = -1


def lose_a_row(entries):
    entries["rows"][0] -= 1


def have_fewer_rows_than_none(entries):
    entries["rows"][1] = -1


def have_rows_behind_the_numbers(entries):
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
    "rows behind": (sealed(have_rows_behind_the_numbers), "has an index of other numbers"),
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
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("layer store: ")]


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
        said = announced(capsys)
        assert len(said) == (filled.computed > 0)
        assert all(re.fullmatch(expected, line) for line in said)
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
        assert not any(store_module._key(sentence) in store.shards for sentence in SENTENCES[:2])


def test_who_has_read_a_shard_keeps_it_when_another_removes_it(tiny_bilm, tmp_path, two_shards):
    reader = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    reader.fill(SENTENCES)
    two_shards.with_suffix(".idx").write_bytes(b"")
    LayerStore(tmp_path, tiny_bilm, dtype="float32").fill(SENTENCES)
    assert not two_shards.with_suffix(".bin").exists()
    assert_right(reader, SENTENCES)


@pytest.mark.parametrize(("module", "name"), [(shards_module, "read_shard"), (shard_module, "_entries")])
def test_a_shard_that_another_process_removes_meanwhile_is_its_to_announce(
    tiny_bilm, tmp_path, capsys, monkeypatch, module, name
):
    store = LayerStore(tmp_path, tiny_bilm, dtype="float32")
    store.fill(SENTENCES)
    read = getattr(module, name)

    def after_it_is_gone(*args):
        for path in (*store.shards.folder.glob("*.idx"), *store.shards.folder.glob("*.bin")):
            path.unlink()
        return read(*args)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, after_it_is_gone)
        late = LayerStore(tmp_path, tiny_bilm, dtype="float32")
        late.shards.scan()
    assert late.fill(SENTENCES) == Filled(computed=N_TOKENS, read=0)
    assert_right(late, SENTENCES)
    assert not announced(capsys)


def test_a_bad_shard_in_a_folder_that_cannot_be_written_is_passed_over(
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
    assert len(list(old.shards.folder.iterdir())) == 3
    store.fill([*SENTENCES, ["new"]])
    assert not announced(capsys)


def test_a_failed_write_leaves_no_shard_and_names_the_option(tiny_bilm, tmp_path, monkeypatch):
    store = LayerStore(tmp_path, tiny_bilm)

    def disk_full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shard_module.os, "fsync", disk_full)
        with pytest.raises(UserError, match=r"bilm\.store\.dir.*No space left"):
            store.fill(SENTENCES)
    assert {path.name for path in store.shards.folder.iterdir()} <= {"about.json"}
    assert store.fill(SENTENCES).computed == N_TOKENS


def test_what_killed_writers_left_is_removed_once_it_is_old(tiny_bilm, tmp_path):
    store = LayerStore(tmp_path, tiny_bilm)
    store.fill(SENTENCES[:1])
    for name in ("0a.bin.tmp", "0b.bin.tmp", "0c.bin", "0d.bin"):
        (store.shards.folder / name).write_bytes(b"unfinished")
    [whole] = (path for path in store.shards.folder.glob("*.bin") if path.with_suffix(".idx").exists())
    for name in ("0a.bin.tmp", "0c.bin", whole.name):
        os.utime(store.shards.folder / name, (1e9, 1e9))
    store.fill(SENTENCES)
    assert {path.name for path in store.shards.folder.glob("0?.bin*")} - {whole.name} == {"0b.bin.tmp", "0d.bin"}
    assert whole.exists()


def fill_in_a_process(weights: Path, root: Path, barrier, answers) -> None:
    torch.set_num_threads(1)
    store = LayerStore(root, BiLM.load(weights), dtype="float32")
    barrier.wait(60)
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
    found = [answers.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
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


def test_a_disk_without_room_is_refused(tiny_bilm, tmp_path, monkeypatch):
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
    exact = [kind(tmp_path, tiny_bilm).shards.folder for kind in (LayerStore, TokenStore)]
    tiny_bilm.precision = "bfloat16"
    assert not {kind(tmp_path, tiny_bilm).shards.folder for kind in (LayerStore, TokenStore)} & set(exact)


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

    def test_it_minds_the_limit(self, tiny_bilm, tmp_path):
        with pytest.raises(UserError, match=r"bilm\.store\.limit_gb"):
            TokenStore(tmp_path / "store", tiny_bilm, limit_gb=1e-9).fill(SENTENCES)
        assert list(tmp_path.iterdir()) == []

    def test_carry_is_refused(self, tiny_bilm, tmp_path):
        with pytest.raises(UserError, match=r"bilm\.state=carry .* bilm\.store\.keep=layers"):
            TokenStore(tmp_path, tiny_bilm, state="carry")
