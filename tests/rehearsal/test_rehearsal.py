"""What is made up is read by the project's own readers, has the asked size and shape, and is the same for one seed."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.rehearsal.__main__ import main
from benchmarks.rehearsal.language import Language, lengths, make_word, raw
from benchmarks.rehearsal.ontonotes import write_ontonotes
from benchmarks.rehearsal.snli import N_PAIRS, write_snli
from benchmarks.rehearsal.squad import N_QUESTIONS, write_squad
from benchmarks.rehearsal.weights import write_bilm
from elmo_tasks.bilm import BiLM
from elmo_tasks.data.coref import CorefReader
from elmo_tasks.data.snli import SnliReader
from elmo_tasks.data.squad import SquadReader
from elmo_tasks.data.srl import SrlReader
from elmo_tasks.data.tokens import tokenize
from elmo_tasks.errors import UserError

SHARE = 0.002


def digest_folder(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_snli_has_its_size_and_its_lengths(tmp_path: Path) -> None:
    assert write_snli(tmp_path, SHARE, seed=1)["train"] == round(N_PAIRS["train"] * SHARE)
    reader = SnliReader()
    items = reader.read_file(tmp_path / "snli" / "snli_1.0_train.jsonl", "train")
    assert len(items) + reader.left_out.get("no majority", 0) == 1100
    assert {item.label for item in items} == {0, 1, 2}
    assert 13 < np.mean([len(item.premise) for item in items]) < 15.2
    assert 7.8 < np.mean([len(item.hypothesis) for item in items]) < 8.8
    assert len({tuple(item.premise) for item in items}) == pytest.approx(1100 / 3, abs=2)


def test_squad_has_its_size_and_answers_that_fit(tmp_path: Path) -> None:
    assert write_squad(tmp_path, SHARE, seed=1)["train"] == round(N_QUESTIONS["train"] * SHARE)
    reader = SquadReader(max_tokens=1000)  # which refuses an answer that is not at its offset
    items = reader.read_file(tmp_path / "squad" / "train-v1.1.json", "train")
    assert len(items) == 175
    assert len({id(item.paragraph) for item in items}) == 38
    assert all(item.span is not None for item in items)
    assert not reader.left_out
    dev = SquadReader(max_tokens=1000).read_file(tmp_path / "squad" / "dev-v1.1.json", "dev")
    assert {len(item.gold["answers"]) for item in dev} == {3}


def test_ontonotes_is_read_by_both_of_its_tasks(tmp_path: Path) -> None:
    assert write_ontonotes(tmp_path, SHARE, seed=1) == {"train": 6, "dev": 1, "test": 1}
    sentences = SrlReader(max_training_tokens=100).read_file(tmp_path / "srl" / "train", "train")
    labels = {tag[2:] for item in sentences for tags in item.gold["tags"] for tag in tags if tag != "O"}
    assert labels == {"V", "ARG0", "ARG1", "ARGM-TMP"}
    documents = CorefReader(max_training_sentences=50).read_file(tmp_path / "coref" / "train", "train")
    assert len(documents) == 6
    assert all(len(cluster) > 0 for document in documents for cluster in document.gold["clusters"])


def test_the_same_seed_writes_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder, seed in zip(folders, (1, 1, 2), strict=True):
        arguments = [str(folder), "--share", "0.0005", "--seed", str(seed)]
        main([*arguments, "--parts", "snli", "squad", "ontonotes"])
    first, same, other = map(digest_folder, folders)
    assert first == same
    assert first.keys() == other.keys()
    assert all(first[name] != other[name] for name in first)


def test_words_are_distinct_and_frequent_by_zipfs_law() -> None:
    words = [make_word(rank) for rank in range(150_000)]
    assert len(set(words)) == len(words)
    drawn = Counter(Language(1000, np.random.default_rng(1)).words(200_000))
    weights = [(rank + 1 + 2.7) ** -1.1 for rank in range(1000)]
    for rank in (0, 1, 10, 100):
        assert drawn[words[rank]] == pytest.approx(200_000 * weights[rank] / sum(weights), rel=0.15)


def test_raw_text_has_the_tokens_it_was_made_of() -> None:
    language = Language(50_000, np.random.default_rng(1))
    for n in (1, 2, 30):
        tokens = language.sentence(n)
        assert [token.word for token in tokenize(raw(tokens), split_hyphens=True)] == tokens


def test_lengths_have_mean_deviation_and_bounds() -> None:
    drawn = lengths(np.random.default_rng(1), 100_000, 137.0, 57.0, 22, 800)
    assert drawn.mean() == pytest.approx(137, rel=0.01)
    assert drawn.std() == pytest.approx(57, rel=0.03)
    assert drawn.min() >= 22


def test_weights_are_read_back(tmp_path: Path) -> None:
    assert round(write_bilm(tmp_path, "small", seed=1) / 1e6, 1) == 13.6
    layers = BiLM.load(tmp_path).layers([["to", "be"]])
    assert layers[0].shape == (3, 2, 256)
    assert layers[0].isfinite().all()


@pytest.mark.parametrize(("arguments", "part"), [(["--share", "0"], "--share"), (["--seed", "-1"], "--seed")])
def test_a_bad_argument_is_refused_in_one_sentence(tmp_path: Path, arguments: list[str], part: str) -> None:
    with pytest.raises(UserError, match=f"^{part} must be"):
        main([str(tmp_path / "out"), *arguments])
    assert not (tmp_path / "out").exists()


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(tmp_path: Path, limited: object) -> None:
    with limited(10_000), pytest.raises(UserError, match="cannot be written"):  # type: ignore[operator]
        main([str(tmp_path), "--parts", "snli", "--share", "0.01"])
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
