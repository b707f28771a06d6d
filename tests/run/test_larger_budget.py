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

from elmo_tasks.config.compose import validate
from elmo_tasks.errors import UserError
from elmo_tasks.files import write_json
from elmo_tasks.runs import larger_budget
from elmo_tasks.runs import run as train
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.saved import read_model
from elmo_tasks.runs.supervised import SupervisedRun
from elmo_tasks.training.checkpoint import STATE

NER = ["task=ner", "elmo.placement=both"]
TASKS = [
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
    first = run_with("steps", 1, *overrides, "test=true")
    assert first["training"]["ended"] == "max_epochs"
    assert "a run with a larger one goes on from here" in capsys.readouterr().out
    row = run_with("steps", 3, *overrides)
    whole = run_with("whole", 3, *overrides)
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
        kill_after(patch, 1)
        with pytest.raises(Killed):
            run_with("steps", 2, *NER)
    row = run_with("steps", 3, *NER)
    assert_same(row, run_with("whole", 3, *NER))
    assert row["training"]["resumed_after"] == [row["training"]["curve"][0]["step"]]


def test_a_run_that_went_on_and_was_killed_resumes_from_its_own_state(
    run_with: RunWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with("steps", 1, *NER)
    with monkeypatch.context() as patch:
        kill_after(patch, 1)
        with pytest.raises(Killed):
            run_with("steps", 3, *NER)
    row = run_with("steps", 3, *NER)
    assert row["training"]["resumed_after"] == [point["step"] for point in row["training"]["curve"][:2]]


PATIENT = [*NER, "trainer.patience=1", "task.optimizer.lr=0"]
"""The first epoch is the best, so that patience ends training after the second."""


@pytest.fixture
def stop_training(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def forbid() -> None:
        monkeypatch.setattr(SupervisedRun, "_train", lambda *_: pytest.fail("it was trained"))

    return forbid


def test_a_run_that_patience_ended_has_the_same_result_with_a_larger_budget(
    composed: Any,
    run_with: RunWith,
    tmp_path: Path,
    stop_training: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = run_with("whole", 9, *PATIENT)
    first = run_with("steps", 3, *PATIENT)
    assert first["training"]["ended"] == "patience"
    stop_training()
    train.run(composed(*PATIENT, f"paths.outputs={tmp_path / 'steps'}", "trainer.max_epochs=9", "plan=true"))
    assert "finished: nothing will be computed" in capsys.readouterr().out
    row = run_with("steps", 9, *PATIENT)
    said = capsys.readouterr()
    assert f"goes on from {first['run_id']}, the same run with trainer.max_epochs=3" in said.err
    assert "a run with a larger one goes on from here" not in said.out
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


@pytest.fixture
def run_folder(composed: Any, tmp_path: Path) -> Callable[..., RunFolder]:
    """``run_folder(3, "task=ner")``: of a run of 3 epochs at most."""

    def find(n_epochs: int, *overrides: str) -> RunFolder:
        run = SupervisedRun(validate(composed(*overrides, f"trainer.max_epochs={n_epochs}")).to_json())
        return RunFolder(tmp_path / "outputs", tmp_path / "outputs" / "rows", run.run_id)

    return find


@pytest.fixture
def goes_on(
    composed: Any, run_folder: Callable[..., RunFolder], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., bool]:
    """``goes_on(3, "task=ner")``: whether this run would begin with a saved state."""

    def begin(n_epochs: int, *overrides: str) -> bool:
        monkeypatch.setattr(SupervisedRun, "measure", killed)
        with pytest.raises(Killed):
            train.run(composed(*overrides, f"trainer.max_epochs={n_epochs}"))
        return (run_folder(n_epochs, *overrides).partial / STATE).exists()

    return begin


def leave_state(folder: RunFolder) -> None:
    """As if the run had been killed."""
    folder.partial.mkdir(parents=True)
    (folder.partial / STATE).write_bytes(2000 * b".")


@pytest.mark.parametrize(
    ("both", "second", "expected"),
    [
        ([], [], True),
        ([], ["seed=2"], False),
        ([], ["task.optimizer.lr=0.01"], False),
        ([], ["force=true"], False),
        (["task.training.schedule=linear"], [], False),
        (["trainer.max_steps=1000"], [], False),
    ],
)
def test_only_the_same_run_goes_on(
    run_folder: Callable[..., RunFolder],
    goes_on: Callable[..., bool],
    both: list[str],
    second: list[str],
    expected: bool,
) -> None:
    leave_state(run_folder(2, *NER, *both))
    assert goes_on(3, *NER, *both, *second) == expected


def test_a_run_that_is_being_made_is_passed_over(
    run_folder: Callable[..., RunFolder], goes_on: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    smaller = run_folder(2, *NER)
    leave_state(smaller)

    def held(path: Path, *, wait: bool) -> AbstractContextManager[None]:
        assert (path, wait) == (smaller.lock, False)
        raise UserError("this run is already being made")

    monkeypatch.setattr(larger_budget, "owned", held)
    assert not goes_on(3, *NER)


def test_a_process_that_is_killed_while_it_copies_leaves_nothing(
    run_folder: Callable[..., RunFolder], goes_on: Callable[..., bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_state(run_folder(2, *NER))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", killed)
        assert not goes_on(3, *NER)
    assert goes_on(3, *NER)


def test_a_disk_that_is_full_is_said_in_one_sentence(
    composed: Any, run_folder: Callable[..., RunFolder], limited: Callable[[int], Any]
) -> None:
    leave_state(run_folder(2, *NER))
    with limited(1000), pytest.raises(UserError, match="cannot be copied"):
        train.run(composed(*NER, "trainer.max_epochs=3"))
    assert not run_folder(3, *NER).partial.exists()
