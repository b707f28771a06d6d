"""``elmo-tasks store``: what it lists, removes and finds damaged."""

import os
import re
import time

import pytest

from elmo_tasks.bilm import BiLM
from elmo_tasks.errors import UserError
from elmo_tasks.store.__main__ import main
from elmo_tasks.store.inventory import inventory, removable
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.locks import locks_folder
from elmo_tasks.store.tokens import TokenStore

SENTENCES = [["the", "cat", "sat"], ["a"], ["ab", "c"]]


@pytest.fixture
def stores(tiny_bilm, tiny_options, shake, tmp_path):
    """Layers and tokens of one biLM, and layers of another one, none of them in use."""
    found = [
        LayerStore(tmp_path, tiny_bilm),
        TokenStore(tmp_path, tiny_bilm),
        LayerStore(tmp_path, shake(BiLM(tiny_options), seed=2), dtype="float32"),
    ]
    for store in found:
        store.fill(SENTENCES)
        stop_using(store)
    return found


def stop_using(store):
    """As the end of the process does."""
    store.shards._lock.release()


def folders(root):
    return {path.parent for path in root.glob("*/about.json")}


def unused_for(store, days):
    os.utime(locks_folder(store.shards.folder) / "use", (time.time() - days * 86_400,) * 2)


def test_everything_is_listed_with_its_kind_and_size(stores, tmp_path, tiny_bilm, capsys, monkeypatch):
    by_folder = {kept.folder: kept for kept in inventory(tmp_path)}
    layers, tokens, other = (by_folder[store.shards.folder] for store in stores)
    assert (layers.keep, layers.n_keys, layers.n_rows, layers.n_shards) == ("layers", 3, 6, 1)
    assert (tokens.keep, tokens.n_rows) == ("tokens", 8)
    assert other.dtype == "float32"
    assert layers.encoder == tokens.encoder == tiny_bilm.digest != other.encoder
    assert layers.n_bytes == sum(p.stat().st_size for p in layers.folder.iterdir() if p.is_file())
    monkeypatch.setenv("COLUMNS", "80")
    main(["--dir", str(tmp_path)])
    message = capsys.readouterr().out
    assert all(f"\n{kept.folder.name[:8]} {kept.encoder[:8]} {kept.keep}" in message for kept in by_folder.values())
    assert "6.0 MB free" not in message
    assert str(tmp_path) in message


def test_nothing_is_removed_without_a_condition_or_without_yes(stores, tmp_path, tiny_bilm, capsys):
    before = folders(tmp_path)
    main(["prune", "--dir", str(tmp_path)])
    assert "nothing to remove" in capsys.readouterr().out
    main(["prune", "--encoder", tiny_bilm.digest[:6], "--dir", str(tmp_path)])
    assert capsys.readouterr().out.count("would be removed") == 2
    assert folders(tmp_path) == before


def test_an_encoders_folders_are_removed(stores, tmp_path, tiny_bilm, capsys):
    main(["prune", "--encoder", tiny_bilm.digest[:6], "--yes", "--dir", str(tmp_path)])
    assert folders(tmp_path) == {stores[2].shards.folder}
    assert capsys.readouterr().out.count("; removed") == 2


def test_folders_that_were_not_used_for_some_days_are_removed(stores, tmp_path):
    unused_for(stores[0], 40)
    unused_for(stores[2], 10)
    main(["prune", "--idle-days", "30", "--yes", "--dir", str(tmp_path)])
    assert folders(tmp_path) == {stores[1].shards.folder, stores[2].shards.folder}


def test_what_a_process_uses_is_kept(stores, tmp_path, tiny_bilm, capsys):
    user = LayerStore(tmp_path, tiny_bilm)
    user.fill(SENTENCES)
    main(["prune", "--idle-days", "0", "--yes", "--dir", str(tmp_path)])
    assert folders(tmp_path) == {user.shards.folder}
    assert f"{user.shards.folder}: in use, kept" in capsys.readouterr().out
    stop_using(user)
    main(["prune", "--idle-days", "0", "--yes", "--dir", str(tmp_path)])
    assert not folders(tmp_path)


def test_folders_of_another_version_can_go(stores, tmp_path):
    about = stores[0].shards.folder / "about.json"
    about.write_text(about.read_text().replace('"version": 4', '"version": 3'))
    [kept] = removable(inventory(tmp_path), encoders=(), idle_days=None)
    assert kept.folder == stores[0].shards.folder


def test_a_folder_that_is_no_layer_store_is_left_alone(stores, tmp_path, capsys):
    for name, content in (("mine", '{"name": "my data"}'), ("empty", ""), ("cut", '{"version": 3, "bi')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "about.json").write_text(content)
    main(["prune", "--idle-days", "0", "--yes", "--dir", str(tmp_path)])
    assert folders(tmp_path) == {tmp_path / name for name in ("mine", "empty", "cut")}


@pytest.mark.parametrize("left", ["", '{"version"'])
def test_a_description_that_a_full_disk_cut_is_written_again(stores, tmp_path, tiny_bilm, left):
    about = stores[0].shards.folder / "about.json"
    whole = about.read_text()
    about.write_text(left)
    assert stores[0].shards.folder not in {kept.folder for kept in inventory(tmp_path)}
    LayerStore(tmp_path, tiny_bilm).fill([*SENTENCES, ["new"]])
    assert about.read_text() == whole


def test_an_encoder_without_a_name_is_refused(stores, tmp_path):
    with pytest.raises(UserError, match=r"^--encoder must be the beginning of a digest, found nothing"):
        main(["prune", "--encoder", "", "--yes", "--dir", str(tmp_path)])
    assert len(folders(tmp_path)) == 3


def test_damage_that_opening_does_not_look_for_is_found(stores, tmp_path, tiny_bilm, capsys):
    [numbers] = stores[0].shards.folder.glob("*.bin")
    data, status = bytearray(numbers.read_bytes()), numbers.stat()
    data[10] ^= 1
    numbers.write_bytes(data)
    os.utime(numbers, ns=(status.st_atime_ns, status.st_mtime_ns))  # as a failing disk would leave it
    with pytest.raises(UserError, match=r"^1 damaged; run verify --remove; the next run recomputes what it needs$"):
        main(["verify", "--dir", str(tmp_path)])
    assert f"{numbers.with_suffix('.idx')} has damaged numbers" in capsys.readouterr().out
    main(["verify", "--remove", "--dir", str(tmp_path)])
    main(["verify", "--dir", str(tmp_path)])
    assert LayerStore(tmp_path, tiny_bilm).fill(SENTENCES).computed == 6


def test_a_shard_that_cannot_be_read_is_not_removed(stores, tmp_path):
    [index] = stores[0].shards.folder.glob("*.idx")
    content = index.read_bytes()
    index.unlink()
    index.mkdir()
    with pytest.raises(UserError, match=rf"^{index}: cannot be read \(Is a directory\)$"):
        main(["verify", "--remove", "--dir", str(tmp_path)])
    index.rmdir()
    index.write_bytes(content)
    main(["verify", "--dir", str(tmp_path)])


def test_a_copied_store_is_checked_once(stores, tmp_path, tiny_bilm, monkeypatch):
    [numbers] = stores[0].shards.folder.glob("*.bin")
    written = numbers.stat().st_mtime_ns
    os.utime(numbers)
    assert LayerStore(tmp_path, tiny_bilm).fill(SENTENCES).computed == 0
    assert numbers.stat().st_mtime_ns == written


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UserError, match=r".*no such folder; expected the one that bilm.store.dir names"):
        main(["--dir", str(tmp_path / "none")])


@pytest.mark.parametrize("days", ["-1", "nan"])
def test_a_negative_number_of_days_is_refused(tmp_path, days):
    with pytest.raises(UserError, match=rf"^--idle-days must be a number of at least 0, found {days}"):
        main(["prune", f"--idle-days={days}", "--dir", str(tmp_path)])


class TestRecompute:
    @pytest.fixture
    def root(self, tiny_bilm, tmp_path):
        """Folders of one biLM in three precisions, two states and both kinds, and its files in ``bilm``."""
        tiny_bilm.save(tmp_path / "bilm")
        for precision in ("float32", "bfloat16", "int8"):
            tiny_bilm.precision = precision
            tiny_bilm.warm_up([["some", "text"]])
            for state in ("reset", "warm", "carry"):
                LayerStore(tmp_path / "store", tiny_bilm, state=state).fill(SENTENCES)
            TokenStore(tmp_path / "store", tiny_bilm, dtype="float32").fill(SENTENCES)
        tiny_bilm.precision = "float32"
        (tmp_path / "warm.txt").write_text("some text\n")
        return tmp_path

    @staticmethod
    def verify(root, *more, n="2"):
        where = ["--dir", str(root / "store"), "--bilm", str(root / "bilm"), "--warm-text", str(root / "warm.txt")]
        main(["verify", "--recompute", n, *where, *more])

    def test_layers_of_these_weights_are_right(self, root, capsys):
        self.verify(root)
        lines = capsys.readouterr().out.splitlines()
        assert sum("2 of 2 recomputed sentences are right" in line for line in lines) == 6
        assert sum("2 of 2 recomputed words are right" in line for line in lines) == 3

    @pytest.mark.parametrize("kind", [LayerStore, TokenStore])
    @pytest.mark.parametrize("without_names", [False, True])
    def test_layers_of_other_weights_are_found_also_by_a_text(
        self, tiny_bilm, tmp_path, monkeypatch, capsys, kind, without_names
    ):
        tiny_bilm.save(tmp_path / "bilm")
        store = kind(tmp_path / "store", tiny_bilm)
        monkeypatch.setattr(store, "_expect_same_encoder", lambda exact=True: None)  # as in earlier versions
        if without_names:
            write = store.shards.append
            monkeypatch.setattr(store.shards, "append", lambda keys, arrays, sample: write(keys, arrays))
        tiny_bilm.encoder.characters.data.mul_(1.5)
        store.fill(SENTENCES)
        (tmp_path / "warm.txt").write_text("a\n")
        (tmp_path / "text.txt").write_text("ab c\nnot stored\n")
        if without_names and kind is LayerStore:  # a store of words always has the marks of sentences
            self.verify(tmp_path, n="9")
            assert "an earlier version wrote it and names no sentence; --text FILE" in capsys.readouterr().out
        text = ["--text", str(tmp_path / "text.txt")] if without_names else []
        with pytest.raises(UserError, match=r": layers that are not those of .*bilm; remove it"):
            self.verify(tmp_path, *text, n="9")
        message = capsys.readouterr().out
        assert "1 of 1 shards whole" in message
        assert re.search(r"'[^']+' is off by up to [\d.]+\n", message)

    @pytest.mark.parametrize("arguments", [["--recompute", "3"], ["--bilm", "mini"], ["--bilm=mini", "--recompute=0"]])
    def test_a_number_and_an_encoder_are_needed(self, root, arguments):
        with pytest.raises(UserError, match=r"^verify --recompute N needs an N of at least 1 and --bilm NAME"):
            main(["verify", "--dir", str(root / "store"), *arguments])

    def test_a_store_without_this_encoder_is_said(self, root, tiny_options, shake):
        shake(BiLM(tiny_options), seed=5).save(root / "bilm")
        with pytest.raises(UserError, match=r"^--bilm .*bilm: nothing that can be recomputed here is of this encoder$"):
            self.verify(root)
