"""What a word of a test set is to a model depends on the training data and the word vectors, not on other test sets."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from elmo_tasks import load_run
from elmo_tasks.errors import UserError
from elmo_tasks.files import digest_files
from elmo_tasks.places import BUNDLED
from elmo_tasks.runs import run as train
from elmo_tasks.runs import supervised

COLUMNS = BUNDLED / "sample" / "conll2003"
DIM = 6


@pytest.fixture
def tagger(composed: Any, tmp_path: Path) -> Any:
    """``tagger("a.txt")``: a tagger on word vectors alone; ``a.txt`` and ``b.txt`` are test sets with other words."""
    data = tmp_path / "data"
    data.mkdir()
    for name in ("eng.train", "eng.testa"):
        (data / name).write_text((COLUMNS / name).read_text())
    sentences = (COLUMNS / "eng.testb").read_text().strip().split("\n\n")
    half = len(sentences) // 2
    (data / "a.txt").write_text("\n\n".join(sentences[:half]) + "\n")
    (data / "b.txt").write_text("\n\n".join(sentences[half:]) + "\n")
    rng = random.Random(1)
    words = sorted({line.split()[0] for path in data.iterdir() for line in path.read_text().splitlines() if line})
    lines = [" ".join([word, *(f"{rng.gauss(0, 1):.3f}" for _ in range(DIM))]) for word in words]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")

    def run(test: str | None, *overrides: str) -> dict[str, Any]:
        files = f"task.files={{train: eng.train, dev: eng.testa, test: {test or 'null'}}}"
        words = ["words=glove", f"words.path={tmp_path / 'vectors.txt'}", f"words.dim={DIM}"]
        given = ["task=pos", "elmo.placement=none", "data=local", f"data.root={data}", files, *words, "data.fraction=1"]
        train.run(composed(*given, *([] if test is None else ["test=true"]), *overrides))
        (path,) = (tmp_path / "outputs" / "rows").glob("pos-*-s1-*.json")
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    return run


def folder_of(tmp_path: Path) -> Path:
    (folder,) = (path for path in (tmp_path / "outputs" / "runs").iterdir() if path.is_dir())
    return folder


def test_a_finished_run_scores_another_test_set_as_a_new_run_does(tagger: Any, monkeypatch: Any) -> None:
    expected = tagger("b.txt")
    first = tagger("a.txt", "force=true")
    monkeypatch.setattr(supervised, "fit", None)  # nothing is trained again
    second = tagger("b.txt")
    assert second["scores"] == expected["scores"]
    assert second["scores"]["test"] != first["scores"]["test"]
    assert second["weights"] == first["weights"] == expected["weights"]
    assert second["parameters"] == first["parameters"] == expected["parameters"]


def test_a_test_set_that_comes_after_training_has_its_vectors(tagger: Any, monkeypatch: Any) -> None:
    expected = tagger("b.txt")
    tagger(None, "force=true")
    monkeypatch.setattr(supervised, "fit", None)
    assert tagger("b.txt")["scores"] == expected["scores"]


def test_evaluate_scores_any_file_as_a_run_does(tagger: Any, tmp_path: Path) -> None:
    expected = {name: tagger(name, "force=true")["scores"]["test"] for name in ("b.txt", "a.txt")}
    run = load_run(folder_of(tmp_path))
    for name in ("b.txt", "a.txt", "b.txt"):
        assert run.evaluate(tmp_path / "data" / name).scores == expected[name]


def test_weights_and_vocabulary_are_those_of_training(tagger: Any, tmp_path: Path) -> None:
    row = tagger("a.txt")
    assert row["data"]["word_vectors"] == digest_files([tmp_path / "vectors.txt"])
    words = json.loads((folder_of(tmp_path) / "fitted.json").read_text())["words"]
    used = [
        line.split()[0]
        for name in ("eng.train", "eng.testa")
        for line in (COLUMNS / name).read_text().splitlines()
        if line and not line.startswith("-DOCSTART-")
    ]
    assert set(words) == set(used)
    assert len(load_file(folder_of(tmp_path) / "model.safetensors")["words.weight"]) == len(words) + 2


def test_word_vectors_that_have_moved_are_asked_for_when_a_new_word_comes(tagger: Any, tmp_path: Path) -> None:
    expected = tagger("b.txt")["scores"]["test"]
    moved = tmp_path / "elsewhere.txt"
    (tmp_path / "vectors.txt").rename(moved)
    folder = folder_of(tmp_path)
    missing = r"^words\.path=\S+vectors\.txt: no such file; words that are new to run pos-\S+ are looked up in it$"
    with pytest.raises(UserError, match=missing):
        load_run(folder).evaluate(tmp_path / "data" / "b.txt")
    known = (COLUMNS / "eng.train").read_text().split("\n\n")[1].split()[0]
    assert load_run(folder).predict([{"tokens": [known]}])  # no vectors are needed
    assert load_run(folder, words_path=str(moved)).evaluate(tmp_path / "data" / "b.txt").scores == expected
    moved.write_text(moved.read_text().replace("1", "2"))
    with pytest.raises(UserError, match=r"elsewhere\.txt holds \w+, but run pos-\S+ has word vectors '\w+'$"):
        load_run(folder, words_path=str(moved)).evaluate(tmp_path / "data" / "b.txt")


def test_word_vectors_for_a_run_that_read_none_are_refused(composed: Any, tmp_path: Path) -> None:
    train.run(composed("task=pos", "elmo.placement=none"))
    (tmp_path / "v.txt").write_text("a 1 2\n")
    with pytest.raises(UserError, match=r"^word vectors \S+v\.txt: run pos-\S+ read no file of word vectors$"):
        load_run(folder_of(tmp_path), words_path=str(tmp_path / "v.txt"))
