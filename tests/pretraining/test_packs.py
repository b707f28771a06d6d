import json
from itertools import islice

import numpy as np
import pytest
import torch

from elmo_tasks.data.corpus import TextFiles, read_sentences
from elmo_tasks.data.lm import LmData
from elmo_tasks.errors import UserError
from elmo_tasks.pretraining import pack_files
from elmo_tasks.pretraining.pack import read_pack, write_pack
from elmo_tasks.pretraining.windows import heldout_windows, training_windows

WORDS = [f"w{k}" for k in range(40)] + ["zebra", "é", "日本", "</S>", "<UNK>"]


@pytest.fixture
def folder(tmp_path):
    """Three shards of sentences of 1 to 9 words, and a held-out file with a word of its own."""
    rng = np.random.default_rng(1)

    def sentences(n):
        return [" ".join(rng.choice(WORDS, size=rng.integers(1, 10))) for _ in range(n)]

    for k in range(3):
        (tmp_path / f"train-{k}.txt").write_text("\n".join(sentences(40)) + "\n\n", "utf-8")
    (tmp_path / "heldout.txt").write_text("\n".join([*sentences(23), "only here"]) + "\n", "utf-8")
    return tmp_path


def paths(folder):
    return {"train": sorted(folder.glob("train-*.txt")), "heldout": [folder / "heldout.txt"]}


@pytest.fixture
def pack(folder):
    return write_pack(folder / "pack", paths(folder), tokens_a_file=70)


def text_data(folder, **options):
    text = TextFiles(root=str(folder), train="train-*.txt", heldout="heldout.txt")
    options = {"batch_size": 4, "window": 6, "vocabulary_size": 30, "min_count": 2, "seed": 1} | options
    data = LmData(text=text, **options)
    data.read()
    return data


def spelled(batch):
    return [tuple(row) for row in batch.char_ids.tolist()], batch.words


def assert_same_batch(found, expected):
    found_words, expected_words = [[tuple(r) for r in b.char_ids.tolist()] for b in (found, expected)]
    look_up = lambda rows, ids: [rows[k] for k in ids.flatten().tolist()]  # noqa: E731
    assert look_up(found_words, found.words) == look_up(expected_words, expected.words)
    assert torch.equal(found.targets, expected.targets)
    assert torch.equal(found.valid, expected.valid)


def test_a_pack_holds_each_sentence_of_the_text_in_order(folder, pack):
    for split, files in paths(folder).items():
        for ids, ends, path in zip(pack.shards[split], pack.ends[split], files, strict=True):
            starts = [0, *(ends[:-1] + 1)]
            found = [[pack.words[k] for k in ids[a:b]] for a, b in zip(starts, ends, strict=True)]
            assert found == list(read_sentences(path))
    assert len(json.loads((folder / "pack" / "pack.json").read_text())["shards"]["train"][0]) > 1


def test_ids_that_16_bits_cannot_hold_come_back(folder, monkeypatch):
    monkeypatch.setattr(pack_files, "_RARE", 10)
    pack = write_pack(folder / "pack", paths(folder))
    found = [pack.words[k] for k in np.concatenate(pack.shards["train"])]
    expected = [w for path in paths(folder)["train"] for s in read_sentences(path) for w in [*s, "</S>"]]
    assert found == expected


def test_the_held_out_text_is_no_training_text(folder):
    files = sorted(folder.glob("*.txt"))
    with pytest.raises(UserError, match=r"/heldout\.txt is in both train and heldout; expected files of its own"):
        write_pack(folder / "pack", {"train": files, "heldout": [folder / "heldout.txt"]})
    assert not (folder / "pack").exists()


def test_the_vocabulary_is_that_of_the_text(folder, pack):
    for size, min_count in ((30, 2), (1000, 1), (1000, 18)):
        data = text_data(folder, vocabulary_size=size, min_count=min_count)
        assert pack.vocabulary(size, min_count).words == data.vocabulary.words
    assert pack.n_positions("train") == data.n_positions
    assert pack.n_positions("heldout") == data.n_heldout


@pytest.mark.parametrize(("n_rows", "n_steps"), [(4, 6), (1, 1), (3, 50), (30, 2)])
@pytest.mark.parametrize("n_windows_at_once", [1, 3, 32])
def test_windows_of_a_pack_are_those_of_the_text(folder, pack, monkeypatch, n_rows, n_steps, n_windows_at_once):
    monkeypatch.setattr("elmo_tasks.pretraining.windows._WINDOWS_AT_ONCE", n_windows_at_once)
    data = text_data(folder, batch_size=n_rows, window=n_steps)
    target_ids = pack.targets(data.vocabulary)
    expected = list(islice(data.train_dataloader(), 2 * data.steps_per_epoch + 3))
    found = training_windows(pack, n_rows, n_steps, seed=1, epoch=0, skip=0)
    for window, batch in zip(islice(found, len(expected)), expected, strict=True):
        assert_same_batch(window.to_batch(pack, target_ids), batch)
    heldout = [window.to_batch(pack, target_ids) for window in heldout_windows(pack, n_rows, n_steps)]
    for window, batch in zip(heldout, data.batches("dev"), strict=True):
        assert_same_batch(window, batch)


def test_an_epoch_can_be_entered_anywhere_and_has_an_order_of_its_own(pack):
    whole = [w.inputs for w in islice(training_windows(pack, 4, 6, seed=1, epoch=2, skip=0), 30)]
    tail = [w.inputs for w in islice(training_windows(pack, 4, 6, seed=1, epoch=2, skip=13), 17)]
    assert all(np.array_equal(a, b) for a, b in zip(whole[13:], tail, strict=True))
    firsts = {next(training_windows(pack, 4, 6, seed=1, epoch=e, skip=0)).inputs.tobytes() for e in range(9)}
    assert len(firsts) > 2


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "pack.json").write_text("{"), r"pack\.json: not JSON"),
        (lambda f: (f / "pack.json").unlink(), r"pack\.json: cannot be read"),
        (lambda f: (f / "words.xz").unlink(), r"words\.xz: cannot be read"),
        (lambda f: cut(f / "train-01-00.xz"), r"train-01-00\.xz: truncated or another file: \d+ bytes, expected \d+"),
        (lambda f: flip(f / "train-01-00.xz"), r"train-01-00\.xz: damaged"),
        (lambda f: change(f, {"words": 7}), r"words\.xz: expected the sentence marks and 5 different words"),
        (lambda f: change(f, {"format": 9}), r"pack\.json: format 9, but this version reads format 1"),
        (lambda f: fewer_words(f), r"does not fit its vocabulary: id \d+, but words\.xz has 9 words"),
    ],
)
def test_a_damaged_pack_gives_a_one_sentence_error(folder, pack, damage, message):
    damage(folder / "pack")
    with pytest.raises(UserError, match=message) as caught:
        read_pack(folder / "pack")
    assert "\n" not in str(caught.value)


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


def flip(path):
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)


def change(folder, changes):
    header = json.loads((folder / "pack.json").read_text())
    (folder / "pack.json").write_text(json.dumps(header | changes))


def fewer_words(folder):
    header = json.loads((folder / "pack.json").read_text())
    words = pack_files.read_compressed(folder, "words.xz", header["files"]).decode().split("\n")[:9]
    entry = pack_files.write_compressed(folder / "words.xz", "\n".join(words).encode())
    change(folder, {"words": 9, "files": header["files"] | {"words.xz": entry}})


def test_what_cannot_be_packed_is_refused(folder, pack, limited):
    with pytest.raises(UserError, match="there is a pack already"):
        write_pack(folder / "pack", paths(folder))
    with pytest.raises(UserError, match=r"no sentence in the heldout text"):
        write_pack(folder / "new", paths(folder) | {"heldout": [empty(folder)]})
    with pytest.raises(UserError, match="cannot be written"), limited(100):
        write_pack(folder / "new", paths(folder))
    assert not (folder / "new" / "pack.json").exists()


def empty(folder):
    (folder / "empty.txt").write_text("\n")
    return folder / "empty.txt"
