import hashlib
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rows_as_json import load
from safetensors.torch import load_file, save_file

from elmo_tasks.assembly import build_bilm, build_data, build_elmo, build_model, build_store
from elmo_tasks.config.compose import validate
from elmo_tasks.data.squad import Paragraph
from elmo_tasks.errors import UserError
from elmo_tasks.files import digest_files
from elmo_tasks.metrics.squad import SquadScore
from elmo_tasks.places import BUNDLED
from elmo_tasks.render.grid import markdown
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.runs import run as train
from elmo_tasks.runs.ensemble import EnsembleRun, load_members
from elmo_tasks.tables.report_sections import PARTS

SEEDS = (1, 2)
SMALL = ("trainer.max_epochs=1", "task.model.hidden=30")
SNLI, SQUAD = ("task=snli", *SMALL), ("task=squad", *SMALL)
WHOLE_SNLI = (*SNLI, "data.fraction=1.0")

Finish = Callable[..., None]


@pytest.fixture(scope="module")
def kept() -> dict[tuple[str, ...], Path]:
    """Outputs of the finished runs of some overrides; they serve all tests."""
    return {}


@pytest.fixture
def finish(composed: Any, tmp_path: Path, tmp_path_factory: Any, kept: dict[tuple[str, ...], Path]) -> Finish:
    """Finished runs of both seeds with random weights: so little training leaves both at one and the same answer."""

    def finish(*overrides: str) -> None:
        if overrides not in kept:
            for seed in SEEDS:
                train.run(composed(*overrides, f"seed={seed}"))
                scatter(tmp_path / "outputs", seed)
            kept[overrides] = tmp_path_factory.mktemp("kept") / "outputs"
            shutil.copytree(tmp_path / "outputs", kept[overrides])
        shutil.copytree(kept[overrides], tmp_path / "outputs", dirs_exist_ok=True)

    return finish


def scatter(outputs: Path, seed: int) -> None:
    """Random weights in place of a member's own; its biases stay near zero, so that no label always wins."""
    (file,) = outputs.glob(f"runs/*-s{seed}-*/model.safetensors")
    (path,) = outputs.glob(f"rows/*-s{seed}-*.json")
    generator, weights = torch.Generator().manual_seed(seed), load_file(file)
    for weight in weights.values():
        if weight.dim() > 1:
            weight.normal_(std=0.3, generator=generator)
    save_file(weights, file)
    row = json.loads(path.read_text("utf-8"))  # of these weights
    path.write_text(json.dumps(row | {"weights": hashlib.sha256(file.read_bytes()).hexdigest()}), "utf-8")


def split_rows(tmp_path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of single runs in order of their seeds, and rows of ensembles."""
    rows = load(tmp_path / "outputs" / "rows")
    singles = sorted((row for row in rows if row["kind"] != "ensemble"), key=lambda row: row["seed"])
    return singles, [row for row in rows if row["kind"] == "ensemble"]


def member_outputs(composed: Any, tmp_path: Path, overrides: tuple[str, ...], split: str) -> list[list[Any]]:
    """Some batches in the order of the file, each with the outputs of both members, all built and loaded here."""
    found: list[list[Any]] = []
    for row in split_rows(tmp_path)[0]:
        cfg = validate(composed(*overrides, f"seed={row['seed']}")).to_json()
        data, bilm = build_data(cfg), build_bilm(cfg)
        data.read()
        data.use_layers(build_store(cfg, bilm), [split])
        model = build_model(cfg, data, build_elmo(cfg, bilm)).eval()
        model.load_state_dict(load_file(tmp_path / "outputs" / "runs" / row["run_id"] / "model.safetensors"))
        items = data.items[split]
        batches = [data.collate(items[k : k + 8]) for k in range(0, len(items), 8)]
        with torch.no_grad():
            found.append([(batch, model(batch)) for batch in batches])
    return [[first[0], first[1], second[1]] for first, second in zip(*found, strict=True)]


@pytest.mark.parametrize("overrides", [SNLI, WHOLE_SNLI])
def test_labels_are_chosen_by_the_mean_of_the_members_probabilities(
    composed: Any, tmp_path: Path, finish: Finish, overrides: tuple[str, ...]
) -> None:
    finish(*overrides)
    value = train.run(composed(*overrides, "ensemble=[1,2]", "test=true"))
    _, (row,) = split_rows(tmp_path)
    assert row["scores"]["dev"]["accuracy"] == value
    assert list(row["scores"]) == ["dev", "test"]
    for split, scores in row["scores"].items():
        gold, probabilities = [], []
        for batch, *outs in member_outputs(composed, tmp_path, overrides, split):
            gold += batch.gold
            probabilities += list(zip(*(out.logits.double().softmax(dim=1).numpy() for out in outs), strict=True))
        chosen = np.mean(probabilities, axis=1).argmax(axis=1)
        assert scores == {"accuracy": pytest.approx(100 * np.mean(chosen == gold))}
        for member in (0, 1):
            assert (np.array(probabilities)[:, member].argmax(axis=1) != chosen).any(), "or the mean is not tested"


def test_answers_are_chosen_by_the_mean_of_the_members_probabilities_of_each_span(
    composed: Any, tmp_path: Path, finish: Finish
) -> None:
    finish(*SQUAD)
    value = train.run(composed(*SQUAD, "ensemble=[1,2]", "test=true"))
    _, (row,) = split_rows(tmp_path)
    assert row["scores"]["dev"]["f1"] == value
    assert list(row["files"]) == [f"{row['run_id']}/{split}/predictions.json" for split in ("dev", "test")]
    for file, (split, scores) in zip(row["files"], row["scores"].items(), strict=True):
        answers, metric = json.loads((tmp_path / "outputs" / "rows" / file).read_text("utf-8")), SquadScore()
        ids, differ = [], 0
        for batch, *outs in member_outputs(composed, tmp_path, SQUAD, split):
            for k, (paragraph, gold) in enumerate(zip(batch.paragraphs, batch.gold, strict=True)):
                members = [
                    slow_spans(paragraph, out.starts[k].exp().tolist(), out.ends[k].exp().tolist()) for out in outs
                ]
                mean = {span: (members[0][span] + members[1][span]) / 2 for span in members[0]}
                answer = answers[gold["id"]]
                probability = max(p for span, p in mean.items() if paragraph.text(*span) == answer)
                assert probability == pytest.approx(max(mean.values()), rel=1e-4)  # another batch may round otherwise
                differ += all(paragraph.text(*max(own, key=lambda span: own[span])) != answer for own in members)
                ids.append(gold["id"])
                metric.update([answer], [gold])
        assert list(answers) == ids
        assert metric.compute() == scores
        assert differ, "or the mean is not tested"


def slow_spans(paragraph: Paragraph, starts: list[float], ends: list[float]) -> dict[tuple[int, int], float]:
    """The probability of every span of at most 17 tokens."""
    n = len(paragraph.tokens)
    return {(i, j): starts[i] * ends[j] for i in range(n) for j in range(i, min(i + 17, n))}


def test_the_row_names_its_members_and_has_no_curve(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI)
    train.run(composed(*SNLI, "ensemble=[1,2]"))
    singles, (row,) = split_rows(tmp_path)
    members = [{name: single[name] for name in ("run_id", "seed", "weights")} for single in singles]
    assert row["ensemble"] == {"members": members}
    assert row["seed"] is None
    assert row["training"] is None
    assert row["run_id"].startswith("snli-sample-cpu-f0.1-both-mini-scalar-l0.001-e2-")
    assert (tmp_path / "outputs" / "rows" / f"{row['run_id']}.json").is_file()
    assert row["parameters"] == sum(single["parameters"] for single in singles)
    assert row["files"] == {}
    assert {**row["elmo"], "weights": singles[0]["elmo"]["weights"]} == singles[0]["elmo"]
    for same in ("task", "slug", "scale", "metric", "data", "bilm"):
        assert row[same] == singles[0][same]


def test_a_baseline_needs_no_bilm(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI, "elmo.placement=none")
    train.run(composed(*SNLI, "elmo.placement=none", "ensemble=[1,2]"))
    _, (row,) = split_rows(tmp_path)
    assert row["bilm"] is None
    assert row["layers"]["computed"] == row["layers"]["read"] == 0


def test_run_again_it_gives_the_same_row_whatever_the_order(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI)
    rows = []
    for seeds in ("[1,2]", "[1,2]", "[2,1]"):
        train.run(composed(*SNLI, f"ensemble={seeds}"))
        (row,) = split_rows(tmp_path)[1]
        rows.append({key: row[key] for key in row if key not in ("created", "seconds", "commit", "dirty")})
    assert rows[0] == rows[1]
    assert rows[0]["scores"] == rows[2]["scores"]


def test_the_row_counts_the_layers_that_any_member_had_to_compute(
    composed: Any, tmp_path: Path, finish: Finish
) -> None:
    finish(*SNLI)
    train.run(composed(*SNLI, "ensemble=[1,2]", "test=true"))  # the members never saw the test set
    _, (row,) = split_rows(tmp_path)
    assert row["layers"]["computed"] > 0


def test_a_state_that_is_carried_comes_from_the_text_that_the_members_read_before(
    composed: Any, tmp_path: Path, finish: Finish
) -> None:
    carried = (*SNLI, "bilm.state=carry", "data.fraction=1.0", "trainer.max_epochs=1")
    finish(*carried)
    train.run(composed(*carried, "ensemble=[1,2]"))
    (row,) = [row for row in load(tmp_path / "outputs" / "rows") if row["kind"] == "ensemble"]
    assert row["layers"]["computed"] == 0


@pytest.mark.parametrize("fraction", [0.1, 1])
def test_words_of_the_test_set_have_their_vectors(composed: Any, finish: Finish, fraction: float) -> None:
    """Members of a share have a vocabulary each, those of the whole training set one together."""
    setting = (*SNLI, "words=glove", f"data.fraction={fraction}")
    finish(*setting)
    run = EnsembleRun(validate(composed(*setting, "ensemble=[1,2]", "test=true")).to_json())
    members, _ = load_members(run.configs, [folder.final for folder in run.folders], run.encoder, ("dev", "test"))
    assert len({id(member.data) for member in members}) == (1 if fraction == 1 else 2)
    for member in members:
        data = member.data
        trained = set(data.fitted.to_json()["words"])
        vectors = data.words.lookup(data._count_words("test"))
        late = [word for word in vectors if word not in trained]
        assert late
        weight = member.model.get_parameter("words.weight")
        assert len(weight) == len(data.fitted.vocabulary)
        for word in late:
            assert torch.equal(weight[data.fitted.vocabulary[word]], torch.tensor(vectors[word]))


def table(folder: Path) -> str:
    grid = PARTS["scores"](read_rows([folder / "outputs" / "rows"])).grid
    return markdown(replace(grid, notes=[]))


def test_the_report_gives_an_ensemble_a_line_of_its_own(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI)
    before = table(tmp_path)
    value = train.run(composed(*SNLI, "ensemble=[1,2]"))
    added = set(table(tmp_path).splitlines()) - set(before.splitlines())
    assert set(before.splitlines()) <= set(table(tmp_path).splitlines())
    (line,) = added
    assert re.search(r"\| both, scalar, lambda 0\.001, mini [0-9a-f]{4}, ensemble of 2 \|", line)  # its own weights
    assert f"| 1 | accuracy | {value:.2f} | - |" in line


@pytest.mark.parametrize("seeds", ["[1,1]", "[1]", "[]", "[1,2,1]", "[1,-2]", "[1,two]", "2"])
def test_members_are_two_or_more_different_seeds(composed: Any, finish: Finish, seeds: str) -> None:
    finish(*SNLI)
    with pytest.raises(UserError, match=r"^ensemble must be a list of two or more different seeds, such as \[1,2,3\]"):
        train.run(composed(*SNLI, f"ensemble={seeds}"))


def test_a_member_that_was_not_run_is_named(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI)
    with pytest.raises(UserError, match=r"^seed 3 has no finished run snli-.*-s3-.* run seed=3 first$"):
        train.run(composed(*SNLI, "ensemble=[1,3,2]"))
    assert split_rows(tmp_path)[1] == []


def test_a_run_of_another_setting_is_not_a_member(composed: Any, finish: Finish) -> None:
    finish(*SNLI)
    with pytest.raises(UserError, match=r"^seed 1 has no finished run"):
        train.run(composed(*SNLI, "elmo.lambda=0.1", "ensemble=[1,2]"))


def test_weights_that_are_gone_are_named(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI)
    (weights,) = (tmp_path / "outputs" / "runs").glob("*-s2-*/model.safetensors")
    weights.unlink()
    with pytest.raises(UserError, match=r"model\.safetensors: the weights of this run are missing; run seed=2 again"):
        train.run(composed(*SNLI, "ensemble=[1,2]"))
    assert split_rows(tmp_path)[1] == []


def test_weights_that_are_damaged_are_named(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI)
    (weights,) = (tmp_path / "outputs" / "runs").glob("*-s2-*/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"model\.safetensors: not the weights that snli-.*-s2-.* was measured with"):
        train.run(composed(*SNLI, "ensemble=[1,2]"))


@pytest.mark.parametrize("trained", [True, False])
def test_a_model_without_probabilities_has_no_ensembles(composed: Any, trained: bool) -> None:
    if trained:
        train.run(composed("task=ner", "elmo.placement=none", "trainer.max_epochs=1"))
    with pytest.raises(UserError, match=r"^task=ner has no ensembles"):
        train.run(composed("task=ner", "elmo.placement=none", "trainer.max_epochs=1", "ensemble=[1,2]"))


def test_a_language_model_has_no_ensembles(composed: Any) -> None:
    with pytest.raises(UserError, match=r"^task=lm has no ensembles"):
        train.run(composed("task=lm", "ensemble=[1,2]"))


def test_members_that_were_made_again_make_another_ensemble(composed: Any, tmp_path: Path, finish: Finish) -> None:
    def name() -> str:
        return EnsembleRun(validate(composed(*SNLI, "ensemble=[1,2]")).to_json()).run_id

    finish(*SNLI)
    first = name()
    assert name() == first
    (file,) = (tmp_path / "outputs").glob("runs/*-s1-*/model.safetensors")
    (path,) = (tmp_path / "outputs").glob("rows/*-s1-*.json")
    file.write_bytes(file.read_bytes() + b" ")  # other weights
    row = json.loads(path.read_text("utf-8")) | {"weights": hashlib.sha256(file.read_bytes()).hexdigest()}
    path.write_text(json.dumps(row), "utf-8")
    assert name() != first


def test_the_row_has_the_digest_of_the_test_set_that_was_scored(composed: Any, tmp_path: Path, finish: Finish) -> None:
    finish(*SNLI)
    train.run(composed(*SNLI, "ensemble=[1,2]", "test=true"))
    _, (row,) = split_rows(tmp_path)
    assert row["data"]["test_digest"] == digest_files([BUNDLED / "sample" / "snli" / "snli_1.0_test.jsonl"])
