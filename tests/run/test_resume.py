"""A run that is killed and started again ends as one that was not."""

import csv
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from kills import Killed, kill_after
from rich.progress import Progress
from rows_as_json import load
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from elmo_tasks.errors import UserError
from elmo_tasks.pretrain.step import TrainingStep
from elmo_tasks.rows.parts import Code
from elmo_tasks.runs import fit as fitting
from elmo_tasks.runs import language_model
from elmo_tasks.runs import run as train
from elmo_tasks.training import checkpoint, progress, tree
from elmo_tasks.training.checkpoint import STATE, ResumeCheckpoint
from elmo_tasks.training.state_file import TensorsAndJson

LM = (
    "task=lm",
    "task.data.batch_size=64",
    "task.model.n_samples=50",
    "trainer.max_epochs=2",
    "trainer.val_check_interval=4",
    "bilm.options.lstm.dim=12",
    "bilm.options.lstm.projection_dim=6",
    "bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]",
    "bilm.options.char_cnn.embedding.dim=4",
)


def outcome(folder: Path) -> dict[str, Any]:
    """Scores, curve without times, and weights of the only run below a folder."""
    (row,) = load(folder / "rows", "finished")
    curve = [{name: value for name, value in point.items() if name != "seconds"} for point in row["training"]["curve"]]
    weights = load_file(folder / "runs" / row["run_id"] / "model.safetensors")
    return {"row": row, "scores": row["scores"], "curve": curve, "weights": weights}


def whole_and_killed(
    composed: Any, tmp_path: Path, monkeypatch: Any, overrides: Sequence[str], *n_saves: int
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The outcome of a run, and for each of ``n_saves`` of the same run killed after so many and started again."""
    train.run(composed(*overrides, f"paths.outputs={tmp_path / 'whole'}"))
    for n in n_saves:
        outputs = tmp_path / f"killed_{n}"
        again = composed(*overrides, f"paths.outputs={outputs}")
        with monkeypatch.context() as patch:
            kill_after(patch, n)
            with pytest.raises(Killed):
                train.run(again)
        assert not list((outputs / "rows").glob("*.json"))
        assert list((outputs / "runs").glob(f"*/{STATE}"))
        train.run(again)
        assert not list((outputs / "runs").glob(f"*.partial/{STATE}"))
        yield outcome(tmp_path / "whole"), outcome(outputs)


def assert_same(killed: dict[str, Any], whole: dict[str, Any]) -> None:
    assert killed["curve"] == whole["curve"]
    assert killed["scores"] == whole["scores"]
    assert killed["weights"].keys() == whole["weights"].keys()
    assert all(torch.equal(killed["weights"][name], whole["weights"][name]) for name in whole["weights"])
    assert whole["row"]["training"]["resumed_after"] == []


TASKS = [
    ["task=ner", "elmo.placement=both"],  # dropout, early stopping
    ["task=squad", "elmo.placement=input", "task.model.hidden=16", "task.model.linear=32"],  # averaged weights
    ["task=snli", "elmo.placement=none"],  # a learning rate that is halved
    ["task=coref", "elmo.placement=none", "task.reader.max_training_sentences=3"],  # cut anew each epoch
]


@pytest.mark.parametrize("overrides", TASKS, ids=lambda overrides: overrides[0])
def test_a_killed_run_is_resumed_and_ends_in_the_same_weights(
    composed: Any, tmp_path: Path, monkeypatch: Any, overrides: list[str]
) -> None:
    overrides = [*overrides, "trainer.max_epochs=3"]
    outcomes = whole_and_killed(composed, tmp_path, monkeypatch, overrides, 1, 2)
    for n_saves, (whole, killed) in zip((1, 2), outcomes, strict=True):
        assert len(whole["curve"]) == 3
        assert_same(killed, whole)
        assert killed["row"]["training"]["resumed_after"] == [killed["curve"][n_saves - 1]["step"]]


@pytest.mark.parametrize(("task", "batch_size"), [(TASKS[0], 40), (TASKS[1], 16)], ids=["ner", "squad"])
def test_a_run_that_is_killed_within_an_epoch_is_resumed_there(
    composed: Any, tmp_path: Path, monkeypatch: Any, task: list[str], batch_size: int
) -> None:
    monkeypatch.setattr(fitting, "SAVED_EVERY", 0.0)  # after each update
    sizes = ["trainer.max_epochs=2", "data.fraction=0.2", f"task.training.batch_size={batch_size}"]
    overrides, saves = [*task, *sizes, "logger=csv"], (1, 3, 7)
    outcomes = whole_and_killed(composed, tmp_path, monkeypatch, overrides, *saves)
    for n_saves, (whole, killed) in zip(saves, outcomes, strict=True):
        assert n_saves < whole["curve"][0]["step"]
        assert_same(killed, whole)
        assert killed["row"]["training"]["resumed_after"] == [n_saves]
        assert metrics(tmp_path / f"killed_{n_saves}") == metrics(tmp_path / "whole")


def metrics(outputs: Path) -> list[dict[str, str]]:
    """The lines of the curves."""
    (path,) = outputs.glob("runs/*/metrics.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_language_model_is_resumed_within_an_epoch_and_after_it(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    outcomes = whole_and_killed(composed, tmp_path, monkeypatch, LM, 1, 2, 3, 4)
    for step, (whole, killed) in zip([4, 8, 10, 14], outcomes, strict=True):
        assert [point["step"] for point in whole["curve"]] == [4, 8, 10, 14, 18, 20]
        assert_same(killed, whole)
        assert killed["row"]["training"]["resumed_after"] == [step]


def test_a_language_model_that_is_killed_between_two_scorings_is_resumed_there(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(language_model, "SAVED_EVERY", 0.0)  # after each update
    overrides = [*LM, "trainer.val_check_interval=7", "task.training.average=0.9", "task.training.schedule=linear"]
    saves = (1, 9, 10, 11)
    outcomes = whole_and_killed(composed, tmp_path, monkeypatch, overrides, *saves)
    for n_saves, (whole, killed) in zip(saves, outcomes, strict=True):
        assert [point["step"] for point in whole["curve"]] == [7, 10, 17, 20]
        assert_same(killed, whole)
        assert killed["row"]["training"]["resumed_after"] == [n_saves]


def test_the_progress_of_a_resumed_run_continues_from_its_updates(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    shown: list[tuple[int, int]] = []
    monkeypatch.setattr(progress, "in_terminal", lambda: True)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    monkeypatch.setattr(Progress, "update", lambda *_, total, completed, **__: shown.append((completed, total)))
    list(whole_and_killed(composed, tmp_path, monkeypatch, [*LM, "trainer.progress=true"], 1))  # after 4 updates
    starts = [n for n, (completed, _) in enumerate(shown) if completed in (0, 4) and shown[n - 1] != shown[n]]
    resumed = list(dict.fromkeys(shown[starts[-1] :]))
    assert resumed == [(n, 20) for n in range(4, 21)]


def test_a_run_is_saved_between_two_scorings_when_it_is_time(composed: Any, monkeypatch: Any) -> None:
    steps, now = [], [0.0]

    def save(path: Path, state: dict[str, Any]) -> None:
        steps.append(state["global_step"])

    def a_minute_an_update(self: Any, *_: Any) -> None:
        now[0] += 60.0

    monkeypatch.setattr(tree, "write_tree", save)
    monkeypatch.setattr(ResumeCheckpoint, "on_before_optimizer_step", a_minute_an_update)
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    sizes = ["task=sst5", "task.training.batch_size=20", "trainer.val_check_interval=null"]
    train.run(composed(*sizes, "trainer.max_epochs=1", "elmo.placement=none"))
    # after ten minutes, but not at the tenth update, whose line of the curves is still to be written; and at the end
    assert steps == [11, 21, 22]


def test_a_language_model_is_saved_between_two_scorings_when_it_is_time(composed: Any, monkeypatch: Any) -> None:
    steps, now, real = [], [0.0], TrainingStep.update

    def save(path: Path, state: dict[str, Any]) -> None:
        steps.append(state["progress"]["updates"])

    def a_minute_an_update(self: Any) -> None:
        now[0] += 61.0
        real(self)

    monkeypatch.setattr(tree, "write_tree", save)
    monkeypatch.setattr(TrainingStep, "update", a_minute_an_update)
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    sizes = [*LM, "task.data.batch_size=32", "trainer.val_check_interval=null"]
    train.run(composed(*sizes, "trainer.max_epochs=1"))
    assert steps == [10, 20]


def test_a_language_model_that_ends_after_some_updates_is_resumed_too(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(language_model, "SAVED_EVERY", 0.0)
    overrides = [*LM, "trainer.val_check_interval=null", "trainer.max_epochs=3", "trainer.max_steps=15"]
    for whole, killed in whole_and_killed(composed, tmp_path, monkeypatch, overrides, 9, 10, 11, 15):
        assert [point["step"] for point in whole["curve"]] == [10, 15]
        assert_same(killed, whole)


def test_a_run_that_is_killed_twice_at_an_epoch_s_end_ends_in_the_same_weights(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    run = ["task=sst5", "task.training.batch_size=200", "trainer.max_steps=9", "trainer.max_epochs=3"]
    whole, killed = ([*run, f"paths.outputs={tmp_path / name}"] for name in ("whole", "killed"))
    train.run(composed(*whole))
    for _ in range(2):
        killed_run(composed, monkeypatch, *killed)
    train.run(composed(*killed))
    assert_same(outcome(tmp_path / "killed"), outcome(tmp_path / "whole"))
    assert outcome(tmp_path / "killed")["row"]["training"]["resumed_after"] == [3, 6]


def test_fine_tuning_is_resumed_with_the_softmax_alone_and_with_both(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    start = ["task.lm.text=sst5", f"task.lm.init={tmp_path / 'bilm'}", "data.fraction=1.0", "trainer.max_epochs=1"]
    outcomes = whole_and_killed(composed, tmp_path, monkeypatch, [*LM, *start], 1, 2, 3)
    for step, (whole, killed) in zip([4, 5, 9], outcomes, strict=True):
        assert [point["step"] for point in whole["curve"]] == [0, 4, 5, 9, 10]
        assert_same(killed, whole)
        assert killed["row"]["training"]["resumed_after"] == [step]
        assert killed["row"]["language_model"]["before"] == whole["row"]["language_model"]["before"]


@pytest.mark.parametrize(("patience", "n_epochs"), [("null", 2), ("1", 4)])
def test_a_run_that_is_killed_when_training_is_over_trains_no_more(
    composed: Any, tmp_path: Path, monkeypatch: Any, patience: str, n_epochs: int
) -> None:
    overrides = [f"trainer.patience={patience}", f"trainer.max_epochs={n_epochs}", "task.optimizer.lr=0.0"]
    ((whole, killed),) = whole_and_killed(composed, tmp_path, monkeypatch, overrides, 2)
    assert len(whole["curve"]) == 2
    assert_same(killed, whole)
    assert killed["row"]["training"]["resumed_after"] == []


def killed_run(composed: Any, monkeypatch: Any, *overrides: str) -> None:
    with monkeypatch.context() as patch:
        kill_after(patch, 1)
        with pytest.raises(Killed):
            train.run(composed(*overrides))


def test_a_run_that_is_killed_twice_is_resumed_twice(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    for _ in range(2):
        killed_run(composed, monkeypatch, "trainer.max_epochs=3")
    train.run(composed("trainer.max_epochs=3"))
    (row,) = load(tmp_path / "outputs" / "rows", "finished")
    assert row["training"]["resumed_after"] == [point["step"] for point in row["training"]["curve"][:2]]
    assert row["seconds"]["fit"] >= row["training"]["curve"][-1]["seconds"] >= row["training"]["curve"][1]["seconds"]


def test_force_starts_from_the_beginning(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    killed_run(composed, monkeypatch)
    train.run(composed("force=true"))
    (row,) = load(tmp_path / "outputs" / "rows", "finished")
    assert row["training"]["resumed_after"] == []


def test_force_starts_a_run_that_has_failed_from_the_beginning(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    with monkeypatch.context() as patch:
        kill_after(patch, 1, ArithmeticError)
        with pytest.raises(ArithmeticError):
            train.run(composed())
    assert load(tmp_path / "outputs" / "rows", "failed")
    assert list((tmp_path / "outputs" / "runs").glob(f"*/{STATE}"))
    train.run(composed("force=true"))
    (row,) = load(tmp_path / "outputs" / "rows", "finished")
    assert row["training"]["resumed_after"] == []


def test_a_finished_run_that_is_made_again_is_resumed_unless_its_state_is_damaged(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    train.run(composed())
    killed_run(composed, monkeypatch, "force=true")
    train.run(composed("force=true"))
    (row,) = load(tmp_path / "outputs" / "rows", "finished")
    assert len(row["training"]["resumed_after"]) == 1
    killed_run(composed, monkeypatch, "force=true")
    (state,) = (tmp_path / "outputs" / "runs").glob(f"*.partial/{STATE}")
    cut(state)
    train.run(composed("force=true"))
    (row,) = load(tmp_path / "outputs" / "rows", "finished")
    assert row["training"]["resumed_after"] == []


def test_the_row_names_all_code_that_trained(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    versions = [Code(commit="a" * 40, dirty=False), Code(commit="b" * 40, dirty=True)]
    for version in (versions[0], versions[0], versions[1]):
        monkeypatch.setattr(fitting, "current_code", lambda version=version: version)
        if version == versions[0]:
            killed_run(composed, monkeypatch, "trainer.max_epochs=3")
        else:
            train.run(composed("trainer.max_epochs=3"))
    (row,) = load(tmp_path / "outputs" / "rows", "finished")
    assert row["training"]["code"] == [asdict(version) for version in versions]


def cut(state: Path) -> None:
    state.write_bytes(state.read_bytes()[:-100])


def flip_a_byte(state: Path) -> None:
    content = bytearray(state.read_bytes())
    content[-1000] ^= 1
    state.write_bytes(content)


def change_a_word(state: Path) -> None:
    content = state.read_bytes()
    assert content.count(b"global_step") == 1
    state.write_bytes(content.replace(b"global_step", b"global_stop"))


def forget_the_digest(state: Path) -> None:
    with safe_open(state, "pt") as file:
        text = file.metadata()["state"]
    save_file(load_file(state), state, metadata={"state": text})


@pytest.mark.parametrize("damage", [cut, flip_a_byte, change_a_word, forget_the_digest])
def test_a_damaged_state_is_named(composed: Any, tmp_path: Path, monkeypatch: Any, damage: Any) -> None:
    killed_run(composed, monkeypatch)
    (state,) = (tmp_path / "outputs" / "runs").glob(f"*/{STATE}")
    damage(state)
    with pytest.raises(UserError, match=rf"{STATE}: damaged .*\(.*\); force=true restarts training from scratch$"):
        train.run(composed())
    assert not list((tmp_path / "outputs" / "rows").iterdir())


@pytest.mark.parametrize("damage", [cut, change_a_word])
def test_a_damaged_state_is_named_by_a_plan(composed: Any, tmp_path: Path, monkeypatch: Any, damage: Any) -> None:
    killed_run(composed, monkeypatch)
    (state,) = (tmp_path / "outputs" / "runs").glob(f"*/{STATE}")
    damage(state)
    with pytest.raises(UserError, match=rf"{STATE}: damaged .*\(.*\); force=true restarts training from scratch$"):
        train.run(composed("plan=true"))


def test_the_state_of_another_model_is_refused(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    killed_run(composed, monkeypatch, "task=sst5")
    killed_run(composed, monkeypatch, "task=ner")
    (other,), (state,) = ((tmp_path / "outputs" / "runs").glob(f"{task}*/{STATE}") for task in ("sst5", "ner"))
    state.write_bytes(other.read_bytes())
    difference = r"weights of another size: model\.words\.weight is .*, but this model's is .*"
    with pytest.raises(
        UserError,
        match=rf"{STATE}: not a saved state of this run \({difference}\); force=true restarts training from scratch$",
    ):
        train.run(composed("task=ner"))


def test_the_state_of_another_size_is_refused_with_both_sizes(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    sizes = [LM, (*LM, "bilm.options.lstm.projection_dim=7")]
    for size in sizes:
        killed_run(composed, monkeypatch, *size)
    other, state = sorted((tmp_path / "outputs" / "runs").glob(f"*/{STATE}"), key=lambda path: path.stat().st_size)
    state.write_bytes(other.read_bytes())
    difference = r"weights of another size: \[\(\d+,\), \(\d+,\)\] and \[\(\d+,\), \(\d+,\)\]"
    with pytest.raises(
        UserError,
        match=rf"{STATE}: not a saved state of this run \({difference}\); force=true restarts training from scratch$",
    ):
        train.run(composed(*sizes[1]))


def test_only_tensors_numbers_strings_and_containers_are_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a state of type complex cannot be saved"):
        TensorsAndJson().save_checkpoint({"a": [1j]}, tmp_path / STATE)
    assert not list(tmp_path.iterdir())


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    shared = torch.arange(6.0).view(2, 3)
    state = {
        "numbers": {0: 1, 7: 0.1 + 0.2, "x": None, "inf": float("inf"), "yes": True},
        "nested": [(1, [shared.t()]), (), [], {}],
        "types": [torch.tensor(3, dtype=torch.uint8), torch.tensor([], dtype=torch.bfloat16), shared],
    }
    TensorsAndJson().save_checkpoint(state, tmp_path / STATE)
    found = TensorsAndJson().load_checkpoint(tmp_path / STATE)
    assert repr(found) == repr(state)


def test_the_digest_of_a_state_is_the_sha_256_of_its_json_and_its_tensors_in_order_of_their_names(
    tmp_path: Path,
) -> None:
    TensorsAndJson().save_checkpoint(
        {str(n): torch.full((2,), n, dtype=torch.int32) for n in range(11)}, tmp_path / STATE
    )
    with safe_open(tmp_path / STATE, "np") as file:
        message = file.metadata()
        contents = [file.get_tensor(name).tobytes() for name in sorted(file.keys())]
    assert len(contents) == 11
    assert message["digest"] == hashlib.sha256(b"".join([message["state"].encode(), *contents])).hexdigest()
