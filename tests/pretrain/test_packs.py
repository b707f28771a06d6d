import json
from collections import Counter
from itertools import islice
from random import Random

import numpy as np
import pytest
from plain import cut_text, spell

from elmo_tasks.data.corpus import LmVocabulary, TextFiles, read_sentences
from elmo_tasks.errors import UserError
from elmo_tasks.pretrain import pack_files
from elmo_tasks.pretrain.pack import encode, read_pack, write_pack
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.windows import heldout_windows, training_windows

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


def shard_by_shard(pack, split):
    """The sentences of each shard, in words."""
    text = pack.splits[split]
    shards = [[text.ids[start : start + n] for start, n in text.sentences([k])] for k in range(text.n_shards)]
    return [[[pack.words[k] for k in ids] for ids in shard] for shard in shards]


def test_a_pack_holds_each_sentence_of_the_text_in_order(folder, pack):
    for split, files in paths(folder).items():
        assert shard_by_shard(pack, split) == [list(read_sentences(path)) for path in files]
    assert len(json.loads((folder / "pack" / "pack.json").read_text())["shards"]["train"][0]) > 1


def test_a_text_in_memory_is_the_one_that_a_pack_holds(folder, pack):
    own = encode({split: map(read_sentences, files) for split, files in paths(folder).items()})
    assert own.words == pack.words
    for split, text in own.splits.items():
        for name, value in vars(text).items():
            assert np.array_equal(value, getattr(pack.splits[split], name)), name
        assert text.ids.dtype == np.int32  # 4 bytes a token


def test_ids_that_16_bits_cannot_hold_come_back(folder, monkeypatch):
    monkeypatch.setattr(pack_files, "_RARE", 10)
    pack = write_pack(folder / "pack", paths(folder))
    found = [pack.words[k] for k in pack.splits["train"].ids]
    expected = [w for path in paths(folder)["train"] for s in read_sentences(path) for w in [*s, "</S>"]]
    assert found == expected


def test_the_held_out_text_is_no_training_text(folder):
    files = sorted(folder.glob("*.txt"))
    with pytest.raises(UserError, match=r"/heldout\.txt is in both train and heldout; expected files of its own"):
        write_pack(folder / "pack", {"train": files, "heldout": [folder / "heldout.txt"]})
    assert not (folder / "pack").exists()


def test_the_vocabulary_and_the_counts_are_those_of_the_text(folder, pack):
    words = {split: [s for path in files for s in read_sentences(path)] for split, files in paths(folder).items()}
    counts = Counter(word for sentence in words["train"] for word in sentence)
    for size, min_count in ((30, 2), (1000, 1), (1000, 18)):
        data = text_data(folder, vocabulary_size=size, min_count=min_count)
        assert data.vocabulary.words == LmVocabulary.from_counts(counts, size, min_count).words
        known = sum(n for word, n in counts.items() if word in data.vocabulary.ids)
        assert data.unknown == pytest.approx(1 - known / counts.total())
        assert [data.vocabulary.words[k] for k in data.target_ids] == [
            word if word in data.vocabulary.ids else "<UNK>" for word in data.pack.words
        ]
    assert data.n_positions == pack.n_positions("train") == sum(len(s) + 1 for s in words["train"])
    assert data.n_heldout == pack.n_positions("heldout") == sum(len(s) + 1 for s in words["heldout"])


def in_order(shards, seed, epoch, n_passes):
    """The sentences of some passes over the shards, each in another order."""
    rng = Random(f"{seed}-{epoch}")
    return [sentence for _ in range(n_passes) for shard in rng.sample(shards, len(shards)) for sentence in shard]


@pytest.mark.parametrize(("n_rows", "n_steps"), [(4, 6), (1, 1), (3, 50), (30, 2)])
@pytest.mark.parametrize("n_windows_at_once", [1, 3, 32])
@pytest.mark.parametrize("one_sentence_a_shard", [False, True])
def test_windows_are_those_that_are_cut_word_by_word(
    folder, monkeypatch, n_rows, n_steps, n_windows_at_once, one_sentence_a_shard
):
    monkeypatch.setattr("elmo_tasks.pretrain.windows._WINDOWS_AT_ONCE", n_windows_at_once)
    shards = {split: [list(read_sentences(path)) for path in files] for split, files in paths(folder).items()}
    if one_sentence_a_shard:  # as a task's text is shuffled
        shards = {split: [[sentence] for shard in found for sentence in shard] for split, found in shards.items()}
    pack = encode(shards)
    for epoch in (0, 3):
        expected = list(cut_text(in_order(shards["train"], 1, epoch, 3), n_rows, n_steps))
        n = 2 * pack.n_positions("train") // (n_rows * n_steps)  # within the second pass all rows are full
        found = training_windows(pack.splits["train"], n_rows, n_steps, seed=1, epoch=epoch, skip=0)
        assert [spell(window, pack.words) for window in islice(found, n)] == expected[:n]
    heldout = heldout_windows(pack.splits["heldout"], n_rows, n_steps)
    expected = list(cut_text([s for shard in shards["heldout"] for s in shard], n_rows, n_steps))
    assert [spell(window, pack.words) for window in heldout] == expected


def test_an_epoch_can_be_entered_anywhere_and_has_an_order_of_its_own(pack):
    def windows(epoch, skip=0):
        return (w.inputs for w in training_windows(pack.splits["train"], 4, 6, seed=1, epoch=epoch, skip=skip))

    whole, tail = list(islice(windows(2), 30)), list(islice(windows(2, skip=13), 17))
    assert all(np.array_equal(a, b) for a, b in zip(whole[13:], tail, strict=True))
    assert len({next(windows(epoch)).tobytes() for epoch in range(9)}) > 2


def test_the_windows_of_a_training_go_on_from_epoch_to_epoch(folder, pack):
    data = text_data(folder)
    n = data.updates_per_epoch
    whole = [window.inputs for window in islice(data.windows(0), 2 * n + 3)]
    for first in (1, n - 1, n, 2 * n + 1):
        for found, expected in zip(data.windows(first), whole[first:], strict=False):
            assert np.array_equal(found.inputs, expected)
    second = next(training_windows(pack.splits["train"], 4, 6, seed=1, epoch=1, skip=0))
    assert np.array_equal(whole[n], second.inputs)


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
