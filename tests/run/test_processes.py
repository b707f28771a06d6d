"""One biLM trained by two processes is the one that a single process trains."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from attack.children import Child, start_run
from rows_as_json import load
from safetensors.torch import load_file

from elmo_tasks.errors import UserError
from elmo_tasks.runs import run as train
from elmo_tasks.training.checkpoint import STATE

REPO = Path(__file__).parents[2]
SMALL = [
    "task=lm",
    "task.data.batch_size=32",
    "task.model.n_samples=50",
    "task.model.dropout=0.0",
    "task.model.forget=0.0",
    "trainer.accelerator=cpu",
    "trainer.threads=1",
    "trainer.progress=false",
    "trainer.val_check_interval=5",
    "trainer.max_steps=15",
    "bilm.options.lstm.dim=12",
    "bilm.options.lstm.projection_dim=6",
    "bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]",
    "bilm.options.char_cnn.embedding.dim=4",
    "logger=none",
]


def run(folder: Path, *overrides: str) -> str:
    """What ``run.py`` prints, with its further processes; what they print to the standard error is in errors.txt."""
    folder.mkdir(exist_ok=True)
    arguments = [*SMALL, f"paths.outputs={folder}", *overrides]
    child = Child(lambda: start_run(arguments), folder / "log.txt", errors=folder / "errors.txt")
    assert child.wait(300) == 0, child.errors.read_text()
    return child.output()


def outcome(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    (row,) = load(folder / "rows")
    return row, load_file(folder / "runs" / row["run_id"] / "model.safetensors")


def assert_close(found: Path, expected: Path) -> None:
    (row, weights), (expected_row, expected_weights) = outcome(found), outcome(expected)
    assert row["run_id"] == expected_row["run_id"]
    curve, expected_curve = row["training"]["curve"], expected_row["training"]["curve"]
    assert [point["step"] for point in curve] == [point["step"] for point in expected_curve] == [5, 10, 15]
    for point, other in zip(curve, expected_curve, strict=True):
        assert point["train_loss"] == pytest.approx(other["train_loss"], rel=1e-5)
        assert point["dev"] == pytest.approx(other["dev"], rel=1e-5)
    assert row["scores"]["dev"] == pytest.approx(expected_row["scores"]["dev"], rel=1e-5)
    apart = torch.cat([(weights[name] - value).abs().flatten() for name, value in expected_weights.items()])
    # the maximum of a filter whose two best places differ by a rounding may go to the other one
    assert apart.max() < 1e-3
    assert (apart > 1e-5).float().mean() < 0.01


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The outputs of a single process and what it printed."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, run(folder)


@pytest.mark.slow
def test_two_processes_train_the_same_bilm_as_one_and_only_one_prints(tmp_path: Path, alone: tuple[Path, str]) -> None:
    (folder, one), two = alone, run(tmp_path / "2", "trainer.devices=2")
    assert_close(tmp_path / "2", folder)
    row, _ = outcome(tmp_path / "2")
    assert (row["processes"], row["status"]) == (2, "finished")
    last = row["training"]["curve"][-1]["dev"]
    assert last == pytest.approx(row["scores"]["dev"], rel=1e-6)  # shared, and by one of them
    assert all((outputs / "errors.txt").read_text() == "" for outputs in (folder, tmp_path / "2"))
    assert two.count("perplexity") == one.count("perplexity") == 1
    assert two.count("\n") == one.count("\n")
    assert not list((tmp_path / "2").glob(f"runs/*.partial/{STATE}"))


KILLED_AT_THE_FIRST_STATE = """
import os, runpy, sys
from elmo_tasks.training import tree

real = tree.write_tree

def save(*arguments):
    real(*arguments)
    os.kill(os.getpid(), 9)

tree.write_tree = save
sys.argv = sys.argv[1:]
runpy.run_path("run.py", run_name="__main__")
"""


@pytest.mark.slow
def test_two_killed_processes_are_resumed(tmp_path: Path, alone: tuple[Path, str]) -> None:
    script = tmp_path / "stop.py"
    script.write_text(KILLED_AT_THE_FIRST_STATE)
    command = [sys.executable, str(script), "run.py", *SMALL, f"paths.outputs={tmp_path / 'killed'}"]
    killed = subprocess.run(
        [*command, "trainer.devices=2"],
        cwd=REPO,
        capture_output=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(REPO)},
    )
    assert killed.returncode != 0
    assert list((tmp_path / "killed").glob(f"runs/*/{STATE}"))
    run(tmp_path / "killed", "trainer.devices=2")
    assert_close(tmp_path / "killed", alone[0])
    row, _ = outcome(tmp_path / "killed")
    assert row["training"]["resumed_after"] == [5]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["task=lm", "trainer.devices=3"], r"batch_size=128 rows cannot be shared evenly by 3 processes"),
        (["task=lm", "trainer.devices=few"], r"^trainer\.devices=few with trainer\.accelerator=cpu: "),
        (["task=lm", "trainer.num_nodes=0"], r"^trainer\.num_nodes must be a whole number of at least 1, found 0"),
    ],
)
def test_what_cannot_be_split_gives_a_one_sentence_error(
    composed: Any, tmp_path: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        train.run(composed(*overrides))
    assert not list(tmp_path.glob("outputs/rows/*"))
