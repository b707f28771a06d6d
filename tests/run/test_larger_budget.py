"""A run with a larger budget goes on from the same run with a smaller one, and ends as if it had had it at once."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
from kills import Killed, kill_after, killed
from rows_as_json import load
from safetensors.torch import load_file

from elmo_tasks.errors import UserError
from elmo_tasks.files import write_json
from elmo_tasks.runs import larger_budget
from elmo_tasks.runs import run as train
from elmo_tasks.runs.saved import read_model
from elmo_tasks.runs.supervised import SupervisedRun
from elmo_tasks.training.checkpoint import STATE

NER = ["task=ner", "elmo.placement=both"]
TASKS = [
    NER,
    ["task=squad", "elmo.placement=none", "task.model.hidden=16", "task.model.linear=32"],  # averaged weights
    ["task=srl", "elmo.placement=none", "task.training.schedule=halve"],
]

RunWith = Callable[..., dict[str, Any]]


@pytest.fixture
def run_with(composed: Any, tmp_path: Path) -> RunWith:
    """``run_with("a", 3, "task=ner")``: the row of a run of 3 epochs at most below the folder ``a``."""

    def run(folder: str, n_epochs: int, *overrides: str) -> dict[str, Any]:
        outputs = tmp_path / folder
        train.run(composed(*overrides, f"paths.outputs={outputs}", f"trainer.max_epochs={n_epochs}"))
        (row,) = (row for row in load(outputs / "rows") if row["config"]["trainer"]["max_epochs"] == n_epochs)
        return row

    return run


def assert_same(row: dict[str, Any], other: dict[str, Any]) -> None:
    """Whether two rows say the same, apart from times and from where training was resumed."""
    for key in ("run_id", "scores", "weights", "elmo", "metric", "status", "parameters", "data"):
        assert row[key] == other[key], key
    assert row["config"]["trainer"] == other["config"]["trainer"]
    told = ("epochs", "best_epoch", "max_epochs", "ended", "converged")
    assert [row["training"][name] for name in told] == [other["training"][name] for name in told]
    assert curve(row) == curve(other)


def curve(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**point, "seconds": None} for point in row["training"]["curve"]]


def weights(folder: Path, row: dict[str, Any]) -> dict[str, torch.Tensor]:
    return load_file(folder / "runs" / row["run_id"] / "model.safetensors")


@pytest.mark.parametrize("overrides", TASKS, ids=lambda overrides: overrides[0])
def test_a_run_that_its_budget_ended_goes_on_with_a_larger_one(
    run_with: RunWith, tmp_path: Path, capsys: pytest.CaptureFixture[str], overrides: list[str]
) -> None:
    first = run_with("steps", 2, *overrides, "test=true")
    assert first["training"]["ended"] == "max_epochs"
    assert "a run with a larger one goes on from here" in capsys.readouterr().out
    row = run_with("steps", 4, *overrides)
    whole = run_with("whole", 4, *overrides)
    assert_same(row, whole)
    assert row["files"] == whole["files"]
    assert not (tmp_path / "steps" / "rows" / row["run_id"] / "test").exists()  # predictions of the smaller run
    assert row["training"]["resumed_after"] == [first["training"]["curve"][-1]["step"]]
    found, expected = weights(tmp_path / "steps", row), weights(tmp_path / "whole", whole)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert (tmp_path / "steps" / "rows" / f"{first['run_id']}.json").exists()


def test_a_run_that_was_killed_goes_on_with_a_larger_budget(
    run_with: RunWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_after(patch, 2)
        with pytest.raises(Killed):
            run_with("steps", 3, *NER)
    row = run_with("steps", 4, *NER)
    assert_same(row, run_with("whole", 4, *NER))
    assert row["training"]["resumed_after"] == [row["training"]["curve"][1]["step"]]


def test_a_run_that_went_on_and_was_killed_resumes_from_its_own_state(
    run_with: RunWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with("steps", 2, *NER)
    with monkeypatch.context() as patch:
        kill_after(patch, 1)
        with pytest.raises(Killed):
            run_with("steps", 4, *NER)
    row = run_with("steps", 4, *NER)
    assert row["training"]["resumed_after"] == [point["step"] for point in row["training"]["curve"][1:3]]


PATIENT = [*NER, "trainer.patience=1", "task.optimizer.lr=0"]
"""The first epoch is the best, so that patience ends training after the second."""


@pytest.fixture
def stop_training(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def forbid() -> None:
        monkeypatch.setattr(SupervisedRun, "_train", lambda *_: pytest.fail("it was trained"))

    return forbid


def test_a_run_that_patience_ended_has_the_same_result_with_a_larger_budget(
    run_with: RunWith, tmp_path: Path, stop_training: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run_with("whole", 9, *PATIENT)
    first = run_with("steps", 3, *PATIENT)
    assert first["training"]["ended"] == "patience"
    stop_training()
    row = run_with("steps", 9, *PATIENT)
    said = capsys.readouterr().out
    assert f"goes on from {first['run_id']}, the same run with trainer.max_epochs=3" in said
    assert "a run with a larger one goes on from here" not in said
    assert_same(row, whole)
    assert row["created"] == first["created"]  # the run is the earlier one
    assert read_model(tmp_path / "steps" / "runs" / row["run_id"]).run_id == row["run_id"]
    tested = run_with("steps", 9, *PATIENT, "test=true")
    assert tested["scores"].keys() == {"dev", "test"}


def test_a_result_that_is_taken_over_may_have_converged(run_with: RunWith, tmp_path: Path) -> None:
    first = run_with("steps", 3, *PATIENT)
    path = tmp_path / "steps" / "rows" / f"{first['run_id']}.json"
    near_the_end = {**first["training"], "best_epoch": 3, "converged": False}
    write_json(path, {**first, "training": near_the_end})
    assert [run_with("steps", n, *PATIENT)["training"]["converged"] for n in (4, 3)] == [True, False]


def test_a_row_without_its_folder_is_enough(
    run_with: RunWith, tmp_path: Path, stop_training: Callable[[], None]
) -> None:
    whole = run_with("whole", 9, *PATIENT, "task=srl")
    first = run_with("steps", 3, *PATIENT, "task=srl")
    shutil.rmtree(tmp_path / "steps" / "runs")
    stop_training()
    row = run_with("steps", 9, *PATIENT, "task=srl")
    assert_same(row, whole)
    rows = tmp_path / "steps" / "rows"
    assert row["files"]
    assert all((rows / name).is_file() for name in (*row["files"], *first["files"]))


@pytest.mark.parametrize(
    "other",
    [
        ["task.training.schedule=linear"],
        ["trainer.max_steps=1000"],
        ["force=true"],
        ["seed=2"],
        ["task.optimizer.lr=0.01"],
    ],
    ids=lambda other: other[0],
)
def test_another_run_starts_at_its_beginning(run_with: RunWith, other: list[str]) -> None:
    shared = [] if other[0].startswith(("seed", "task.optimizer")) else other
    run_with("steps", 2, *NER, *shared)
    assert run_with("steps", 3, *NER, *other)["training"]["resumed_after"] == []


def test_a_run_that_is_being_made_is_passed_over(run_with: RunWith, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_with("steps", 2, *NER)

    def held(path: Path, *, wait: bool) -> AbstractContextManager[None]:
        assert (path.stem, wait) == (first["run_id"], False)
        raise UserError("this run is already being made")

    monkeypatch.setattr(larger_budget, "owned", held)
    assert run_with("steps", 3, *NER)["training"]["resumed_after"] == []


def test_a_process_that_is_killed_while_it_copies_leaves_nothing(
    run_with: RunWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_with("steps", 2, *NER)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        with pytest.raises(Killed):
            run_with("steps", 3, *NER)
    assert not list((tmp_path / "steps" / "runs").glob(f"*.partial/{STATE}"))
    assert run_with("steps", 3, *NER)["training"]["resumed_after"] == [first["training"]["curve"][-1]["step"]]


def test_a_disk_that_is_full_is_said_in_one_sentence(
    run_with: RunWith, tmp_path: Path, limited: Callable[[int], Any]
) -> None:
    run_with("steps", 2, *NER)
    with limited(1000), pytest.raises(UserError, match="cannot be copied"):
        run_with("steps", 3, *NER)
    assert not list((tmp_path / "steps" / "runs").glob("*.partial"))
