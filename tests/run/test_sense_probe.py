"""Runs of the sense probe on the bundled sample with a tiny biLM."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows_as_json import load

from elmo_tasks.bilm import BiLM
from elmo_tasks.data.senses import read_inventory, read_sense_corpus
from elmo_tasks.errors import UserError
from elmo_tasks.places import BUNDLED
from elmo_tasks.runs import run as train
from elmo_tasks.runs.sense_probe import SenseProbeRun

SAMPLE = BUNDLED / "sample" / "wsd"
TEST = ("senseval2", "senseval3", "semeval2013", "semeval2015")


@pytest.fixture
def run(composed: Any) -> Any:
    def run(*overrides: str) -> float:
        return train.run(composed("task=wsd", "data.fraction=1", "bilm.store.dtype=float32", *overrides))

    return run


def rows(tmp_path: Path) -> list[dict[str, Any]]:
    return load(tmp_path / "outputs" / "rows")


def sentences(name: str) -> Any:
    folder = SAMPLE / ("semcor" if name == "sample" else f"eval/{name}")
    return read_sense_corpus(folder / f"{name}.data.xml", folder / f"{name}.gold.key.txt")


def expected(bilm: BiLM, layer: int) -> dict[str, float]:
    """Accuracy by set, by loops over single sentences."""

    def instances(name: str) -> Any:
        for sentence in sentences(name):
            (layers,) = bilm.layers([sentence.tokens])
            for i in sentence.instances:
                yield i, layers[layer, i.start : i.end].numpy().astype(float).mean(axis=0)

    seen: dict[Any, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for i, vector in instances("sample"):
        for key in i.keys:
            seen[i.lemma][key].append(vector)
    scores, n_right, n = {}, 0, 0
    for name in TEST:
        right = []
        for i, vector in instances(name):
            means = {key: np.mean(vectors, axis=0) for key, vectors in seen[i.lemma].items()}
            cosines = {k: m @ vector / np.sqrt((m @ m) * (vector @ vector)) for k, m in means.items()}
            first = read_inventory(SAMPLE / "wordnet-3.0" / "index.sense", {i.lemma})[i.lemma][0]
            right.append(max(cosines, key=lambda key: cosines[key], default=first) in i.keys)
        scores[name] = 100 * sum(right) / len(right)
        n_right, n = n_right + sum(right), n + len(right)
    return {"f1": 100 * n_right / n, **scores}


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_the_row_has_the_scores_of_plain_loops(run: Any, tmp_path: Path, tiny_bilm: BiLM, layer: int) -> None:
    run(f"elmo.mix=layer_{layer}", "test=true")
    (row,) = rows(tmp_path)
    assert row["scores"]["test"] == pytest.approx(expected(BiLM.load(tmp_path / "bilm"), layer))
    assert row["sense_probe"]["instances"] == {
        "train": {"train": 40}, "dev": {"semeval2007": 6}, "test": dict.fromkeys(TEST, 5)
    }  # fmt: skip
    assert row["sense_probe"]["first_sense"] == {"dev": 0, "test": 2}
    assert row["data"]["items"]["test"] == {"original": 20, "used": 20}
    assert row["elmo"] == {"placement": "input", "mix": f"layer_{layer}", "weights": {}}
    assert row["bilm"]["digest"] == tiny_bilm.digest


def test_the_baseline_is_the_first_sense_and_reads_no_layer(run: Any, tmp_path: Path) -> None:
    run("elmo.placement=none", "test=true")
    (row,) = rows(tmp_path)
    first = {("bank", "n"): "bank%1:17:01::", ("crane", "n"): "crane%1:18:01::", ("palm", "n"): "palm%1:08:00::"}
    found = [first[i.lemma] in i.keys for s in sentences("senseval2") for i in s.instances]
    assert row["scores"]["test"]["senseval2"] == 100 * sum(found) / len(found) == 40
    assert row["bilm"] is None
    assert row["layers"] == {"computed": 0, "read": 0}
    assert row["sense_probe"]["first_sense"] == {"dev": 6, "test": 20}


def test_a_finished_layer_is_found_again_and_layers_share_one_pass(
    run: Any, tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    run("elmo.mix=layer_1")
    run("elmo.mix=layer_2")
    assert [row["layers"]["computed"] > 0 for row in rows(tmp_path)] == [True, False]
    assert all(set(row["scores"]) == {"dev"} for row in rows(tmp_path))
    monkeypatch.setattr(SenseProbeRun, "measure", None)
    capsys.readouterr()
    run("elmo.mix=layer_1", "trainer.max_epochs=7", "words=glove")  # neither takes part
    assert "already finished" in capsys.readouterr().out


def test_a_fraction_of_the_training_sentences_can_be_used(run: Any, tmp_path: Path) -> None:
    run("elmo.mix=last", "data.fraction=0.25")
    (row,) = rows(tmp_path)
    assert row["data"]["items"]["train"] == {"original": 40, "used": 10}
    assert row["sense_probe"]["instances"]["train"] == {"train": 10}
    assert row["sense_probe"]["first_sense"]["dev"] > 0


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("elmo.mix=scalar", r"^elmo\.mix must be layer_0, .* with task=wsd: it learns no weights"),
        ("elmo.placement=both", r"^elmo\.placement must be input or none with task=wsd, not an output, found 'both'"),
        ("elmo.mix=layer_9", r"^elmo\.mix=layer_9: this biLM has 3 layers"),
        ("task.data.train=wsd/none", r"wsd/none: no \*\.data\.xml in it; set data\.root, or task\.data\.train"),
        ("task.data.senses=wsd/none", r"wsd/none: no such file; set data\.root, or task\.data\.senses"),
        ("task.data.dev=[wsd/semcor,wsd/x]", r"wsd/x: no \*\.data\.xml in it.*task\.data\.dev"),
        ("data=hub", r"^data=hub has no text for task=wsd; use data=local data\.root=DIR"),
        ("ensemble=[1,2]", r"^task=wsd has no ensembles"),
    ],
)
def test_what_a_probe_cannot_do_gives_a_one_sentence_error(
    composed: Any, run: Any, tmp_path: Path, override: str, message: str
) -> None:

    with pytest.raises(UserError, match=message):
        run(override)
    assert not list(tmp_path.glob("outputs/rows/*.json"))


@pytest.mark.parametrize("there", ["", "wsd/eval/senseval2,"])
def test_without_all_test_sets_the_dev_set_is_scored_alone(run: Any, tmp_path: Path, there: str) -> None:
    test = f"task.data.test=[{there}wsd/none]"
    run("elmo.mix=last", test)
    with pytest.raises(UserError, match=r"^wsd/none: no such folder; set data\.root, or task\.data\.test"):
        run("elmo.mix=last", test, "test=true")
