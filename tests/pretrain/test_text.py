from collections import Counter
from itertools import chain, islice

import numpy as np
import pytest
from plain import spell

from elmo_tasks.data.corpus import TextFiles
from elmo_tasks.errors import UserError
from elmo_tasks.pretrain.team import Team
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.windows import training_windows

LINES = [f"{a} {b} {a}{b}" if k % 3 else a for k, (a, b) in enumerate(zip("abcdefghijkl", "mnopqrstuvwx", strict=True))]


def write(folder, heldout, train):
    for name, texts in (("train", train), ("heldout", heldout)):
        for k, text in enumerate(texts):
            (folder / f"{name}-{k}.txt").write_text(text, "utf-8")


def open_data(folder, **changes):
    options = {"batch_size": 2, "window": 3, "vocabulary_size": 100, "min_count": 1, "seed": 1} | changes
    text = TextFiles(root=str(folder), train="train-*.txt", heldout="heldout-*.txt")
    data = LmData(text=text, **options)
    data.read()
    return data


def make(folder, heldout, train=("a b c\nd e\n",), **changes):
    write(folder, heldout, train)
    return open_data(folder, **changes)


def inputs(data, window):
    """Input words ``[2][B][S]``."""
    return [[list(row) for row in zip(*side, strict=True)] for side in spell(window, data.pack.words).inputs]


def targets(data, window):
    """Words of the vocabulary ``[2][B][S]``."""
    words, ids = data.vocabulary.words, data.target_ids[window.targets]
    return [[[words[k] for k in row] for row in side.T.tolist()] for side in ids]


def endless(data):
    """The windows of the first epoch, and on."""
    return training_windows(data.pack.splits["train"], data.batch_size, data.window, data.seed, epoch=0, skip=0)


def streams(data, batches):
    """Each row's whole stream as (input, target) pairs, ``[2][B]``, positions beyond the text left out."""
    rows = [[[] for _ in range(data.batch_size)] for _ in range(2)]
    for batch in batches:
        for direction in (0, 1):
            for row in range(data.batch_size):
                pairs = zip(inputs(data, batch)[direction][row], targets(data, batch)[direction][row], strict=True)
                rows[direction][row] += [p for p, valid in zip(pairs, batch.valid[:, row], strict=True) if valid]
    return rows


def test_two_rows_of_three_steps_are_laid_out_as_by_hand(tmp_path):
    data = make(tmp_path, ["a b\nd\nc e\n"], train=["a b c d e\n"])
    first, second = data.heldout()
    assert inputs(data, first) == [
        [["<S>", "a", "b"], ["<S>", "d", "<S>"]],
        [["</S>", "b", "a"], ["</S>", "d", "</S>"]],
    ]
    assert targets(data, first) == [
        [["a", "b", "</S>"], ["d", "</S>", "c"]],
        [["b", "a", "<S>"], ["d", "<S>", "e"]],
    ]
    assert first.valid.tolist() == [[True, True]] * 3
    assert second.valid.tolist() == [[False, True], [False, True], [False, False]]
    assert [row[1][:2] for row in inputs(data, second)] == [["c", "e"], ["e", "c"]]
    assert [row[1][:2] for row in targets(data, second)] == [["e", "</S>"], ["c", "<S>"]]


@pytest.mark.parametrize(("batch_size", "window"), [(1, 1), (2, 3), (3, 20), (20, 4)])
def test_every_heldout_sentence_is_read_once_in_both_directions(tmp_path, batch_size, window):
    heldout = ["\n".join(LINES[:5]), "\n".join(LINES[5:])]
    data = make(tmp_path, heldout, train=["\n".join(LINES * 3)], batch_size=batch_size, window=window)
    batches = list(data.heldout())
    forward, backward = streams(data, batches)
    found = []
    for ahead, back in zip(forward, backward, strict=True):
        sentences = " ".join(word for word, _ in ahead).split("<S> ")[1:]
        sentences = [text.split() for text in sentences]
        assert ahead == [p for s in sentences for p in zip(["<S>", *s], [*s, "</S>"], strict=True)]
        reversals = [s[::-1] for s in sentences]
        assert back == [p for s in reversals for p in zip(["</S>", *s], [*s, "<S>"], strict=True)]
        found += [" ".join(s) for s in sentences]
    assert Counter(found) == Counter(LINES)
    assert sum(int(batch.valid.sum()) for batch in batches) == sum(len(line.split()) + 1 for line in LINES)
    assert all(batch.valid.shape == (window, batch_size) for batch in batches)


def test_heldout_text_is_the_same_each_time(tmp_path):
    data = make(tmp_path, ["\n".join(LINES)])
    once, again = ([inputs(data, batch) for batch in data.heldout()] for _ in range(2))
    assert once == again


def test_rare_words_are_unknown_as_targets_but_spelled_as_inputs(tmp_path):
    data = make(tmp_path, ["a zebra\n"], window=4, batch_size=1)
    [batch] = data.heldout()
    assert inputs(data, batch)[0][0][:3] == ["<S>", "a", "zebra"]
    assert targets(data, batch)[0][0][:3] == ["a", "<UNK>", "</S>"]


def first_sentences(data, n_windows, row=0):
    pairs = streams(data, islice(endless(data), n_windows))[0][row]
    return [text.split() for text in " ".join(word for word, _ in pairs).split("<S> ")[1:-1]]


def test_training_text_never_ends_and_its_shards_are_shuffled(tmp_path):
    shards = [[f"{k}a", f"{k}b"] for k in range(6)]  # two sentences of one word each
    data = make(tmp_path, ["x\n"], train=["\n".join(shard) for shard in shards], batch_size=1, window=8)
    words = [word for [word] in first_sentences(data, 50)]
    epochs = [words[k : k + 12] for k in range(0, 96, 12)]
    assert all(sorted(epoch) == sorted(chain.from_iterable(shards)) for epoch in epochs)
    assert all(epoch[k : k + 2] in shards for epoch in epochs for k in range(0, 12, 2))
    assert len({tuple(epoch) for epoch in epochs}) > 4
    same, other = (open_data(tmp_path, batch_size=1, window=8, seed=seed) for seed in (1, 2))
    assert first_sentences(same, 50) == [[word] for word in words]
    assert first_sentences(other, 50) != [[word] for word in words]


def test_training_windows_are_always_full(tmp_path):
    data = make(tmp_path, ["x\n"], train=["a b c\nd e\n" * 4], batch_size=3, window=7)
    assert all(batch.valid.all() for batch in islice(endless(data), 20))


@pytest.mark.parametrize(("text", "expected"), [("a b c\nd e\n" * 10, 70 // 6), ("a\n" * 3, 1)])
def test_an_epoch_counts_whole_windows(tmp_path, text, expected):
    assert make(tmp_path, ["x\n"], train=[text]).updates_per_epoch == expected


@pytest.mark.parametrize(
    ("texts", "found"), [(["a\n" * 2, "b\n"], 6), (["a\n", "", "b c\n"], 5), (["", "\n \n"], 0), (["\ufeff"], 0)]
)
def test_training_text_that_fills_no_window_is_refused(tmp_path, texts, found):
    files = rf"{tmp_path}/train-0\.txt{f' and {len(texts) - 1} more' if len(texts) > 1 else ''}"
    window = r"one window of task\.data\.batch_size=2 rows .* takes 8;"
    message = rf"^the training text \({files}\) has {found} positions, but {window}"
    with pytest.raises(UserError, match=message):
        make(tmp_path, ["x\n"], train=texts, window=4)


def test_an_empty_shard_beside_others_is_skipped(tmp_path):
    data = make(tmp_path, ["", "x\n"], train=["", "a b\n" * 5, "\n"])
    assert (data.n_positions, data.n_heldout) == (15, 2)
    assert data.unknown == 0


def test_held_out_text_without_a_sentence_is_refused(tmp_path):
    with pytest.raises(
        UserError,
        match=rf"^there is no sentence in the held-out text \({tmp_path}/\S+ and 1 more\); set task\.lm\.train and",
    ):
        make(tmp_path, ["", "\n"])


@pytest.mark.parametrize("n_processes", [2, 3])
def test_the_rows_of_several_processes_are_those_of_one(tmp_path, n_processes):
    data = make(tmp_path, ["\n".join(LINES)], train=["\n".join(LINES)], batch_size=6, window=4)
    for windows in (islice(data.windows(0), 12), data.heldout()):
        number = 0
        for window in windows:
            number += 1
            shares = [window.of_rows(Team(n_processes, rank).rows(6)) for rank in range(n_processes)]
            assert {share.inputs.shape for share in shares} == {(2, 4, 6 // n_processes)}
            for name in ("inputs", "targets", "valid"):
                parts = [getattr(share, name) for share in shares]
                assert np.array_equal(np.concatenate(parts, axis=-1), getattr(window, name))
        assert number > 1


@pytest.mark.parametrize("option", ["train", "heldout"])
def test_missing_text_is_named_by_its_option(tmp_path, option):
    write(tmp_path, ["x\n"], ["x\n"])
    (tmp_path / f"{option}-0.txt").unlink()
    with pytest.raises(UserError, match=rf"{option}-\*\.txt: no text found; set task\.lm\.{option}"):
        open_data(tmp_path)


def test_truncated_words_are_named_once_wherever_they_occur(tmp_path):
    data = make(tmp_path, heldout=[f"{'c' * 49} a\n"], train=[f"a {'b' * 60} {'b' * 60}\n{'d' * 48} e f\n"])
    assert data.truncated == f"words longer than 48 bytes are truncated: 2, such as '{'b' * 60}'"
    write(tmp_path, ["a\n"], ["a b c d e f\n"])
    assert open_data(tmp_path).truncated == ""


def test_the_share_outside_the_vocabulary_is_one_of_tokens_not_of_words(tmp_path):
    data = make(tmp_path, ["a\n"], train=["a a a b\na a a b\nc\n"], vocabulary_size=4)  # <S>, </S>, <UNK> and a
    assert data.unknown == pytest.approx(3 / 9)
