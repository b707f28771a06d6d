"""Whole runs with another encoder in the biLM's place."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from rows_as_json import load

from elmo_tasks.config.compose import validate
from elmo_tasks.encoders.cove import CoVe
from elmo_tasks.errors import UserError
from elmo_tasks.runs import run as train
from elmo_tasks.runs.supervised import SupervisedRun


@pytest.fixture
def cove(cove_files: Any) -> list[str]:
    return [
        "bilm=cove",
        f"bilm.path={cove_files[0]}",
        f"bilm.options.words.path={cove_files[1]}",
        "bilm.options.words.dim=5",
        "bilm.options.lstm.dim=5",
    ]


@pytest.fixture
def bert(hf_folder: Any) -> list[str]:
    return ["bilm=hf", f"bilm.path={hf_folder('bert')}", "bilm.options.pieces=mean"]


@pytest.mark.parametrize("encoder", ["cove", "bert"])
@pytest.mark.parametrize(("task", "placement"), [("sst5", "both"), ("ner", "input"), ("squad", "output")])
def test_a_run_leaves_a_row(
    composed: Any, tmp_path: Any, request: Any, encoder: str, task: str, placement: str
) -> None:
    chosen = request.getfixturevalue(encoder)
    small = ["data.fraction=0.03", "trainer.max_epochs=1"]
    value = train.run(composed(*chosen, *small, f"task={task}", f"elmo.placement={placement}"))
    (row,) = load(tmp_path / "outputs" / "rows")
    assert row["scores"]["dev"][row["metric"]["name"]] == value
    assert all(len(weights["s"]) == 3 for weights in row["elmo"]["weights"].values())
    assert row["bilm"]["name"] == row["config"]["bilm"]["name"] in row["run_id"]
    assert row["layers"]["computed"] > 0


@pytest.mark.parametrize("encoder", ["cove", "bert"])
def test_mixes_share_one_pass_other_options_do_not_and_seeds_make_an_ensemble(
    composed: Any, tmp_path: Any, request: Any, encoder: str
) -> None:
    chosen = request.getfixturevalue(encoder)
    small = ["trainer.max_epochs=1", "elmo.placement=output"]
    other = "bilm.options.words.lowercase=true" if encoder == "cove" else "bilm.options.pieces=first"
    for override in ("elmo.mix=scalar", "elmo.mix=layer_1", "seed=2", other):
        train.run(composed(*chosen, *small, override))
    rows = {row["run_id"]: row for row in load(tmp_path / "outputs" / "rows")}
    assert len(rows) == 4
    assert [run_id for run_id, row in rows.items() if not row["layers"]["computed"]] == [
        run_id for run_id in rows if "layer_1" in run_id
    ]
    assert len({row["bilm"]["digest"] for row in rows.values()}) == 2
    train.run(composed(*chosen, *small, "ensemble=[1,2]"))
    assert len(load(tmp_path / "outputs" / "rows")) == 5


@pytest.mark.parametrize("encoder", ["cove", "bert"])
@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("bilm.state=carry", r"^bilm\.state=carry needs a biLM; bilm=\w+ supports only reset"),
        ("bilm.state=warm", r"^bilm\.state=warm needs a biLM; bilm=\w+ supports only reset"),
        ("bilm.store.keep=tokens", r"^bilm\.store\.keep=tokens needs a biLM; bilm=\w+ supports only layers"),
        ("bilm.path=null", r"^bilm=\w+ is not bundled; set bilm\.path to its files"),
        ("bilm.name=a/b", r"^bilm\.name must be a name of letters"),
        ("elmo.mix=layer_3", r"has 3 layers: layer_0, layer_1, layer_2"),
        ("task=lm", r"^bilm=\w+ is not a biLM and cannot be trained with task=lm"),
    ],
)
def test_options_that_only_a_bilm_has_are_refused(
    composed: Any, tmp_path: Any, request: Any, encoder: str, override: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        train.run(composed(*request.getfixturevalue(encoder), override))
    assert not (tmp_path / "outputs").exists()


def test_a_baseline_asks_for_no_files(composed: Any) -> None:
    train.run(composed("bilm=cove", "bilm.path=null", "elmo.placement=none", "trainer.max_epochs=1"))


def test_layers_too_large_for_the_store_ask_for_another_dtype(
    composed: Any, cove: list[str], tmp_path: Any, monkeypatch: Any
) -> None:
    layers = CoVe.layers
    monkeypatch.setattr(CoVe, "layers", lambda self, sentences: [1e6 * x for x in layers(self, sentences)])
    small = [*cove, "trainer.max_epochs=1", "elmo.placement=output"]
    with pytest.raises(
        UserError, match=r"^a layer holds .*e\+06, too large for float16; set bilm\.store\.dtype=float3"
    ):
        train.run(composed(*small))
    assert not list((tmp_path / "outputs" / "layers").glob("*/*.tmp"))
    train.run(composed(*small, "bilm.store.dtype=float32"))


def run_id(composed: Any, *overrides: str) -> str:
    return SupervisedRun(validate(composed("task=sst5", *overrides)).to_json()).run_id


def test_a_warm_up_text_is_identified_by_its_content(composed: Any, tmp_path: Path) -> None:
    found, text = [], tmp_path / "warm.txt"
    for content in ("some text\n", "other text\n", "some text\n"):
        text.write_text(content)
        found.append(run_id(composed, "bilm.state=warm", f"bilm.warm_text={text}"))
    assert found[0] == found[2] != found[1]


def test_word_vectors_are_identified_by_content_and_not_by_path(composed: Any, tmp_path: Path) -> None:
    def name(path: Path) -> str:
        return run_id(composed, "elmo.placement=none", "words=glove", f"words.path={path}", "words.dim=2")

    path = tmp_path / "v.txt"
    path.write_text("the 1 2\n")
    first = name(path)
    assert name(Path(shutil.copy(path, tmp_path / "elsewhere.txt"))) == first
    path.write_text("the 1 3\n")
    assert name(path) != first
