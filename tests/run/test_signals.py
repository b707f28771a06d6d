"""SIGTERM and Ctrl-C: the state is saved, a sentence says how to go on, and the status is that of the signal."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rows_as_json import load
from safetensors.torch import load_file

from elmo_tasks.training.checkpoint import STATE

REPO = Path(__file__).parents[2]
SMALL = ("trainer.threads=1", "trainer.progress=false", "trainer.accelerator=cpu", "words=random")
NER = ("task=ner", "elmo.placement=none", "trainer.max_epochs=3", "trainer.patience=null")
LM = (
    "task=lm",
    "task.data.batch_size=64",
    "task.model.n_samples=50",
    "trainer.max_epochs=4",
    "bilm.options.lstm.dim=12",
    "bilm.options.lstm.projection_dim=6",
)
STATUS = {signal.SIGTERM: 143, signal.SIGINT: 130}


def start(outputs: Path, *overrides: str) -> Any:
    command = [sys.executable, "run.py", *overrides, *SMALL, f"paths.outputs={outputs}"]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    return subprocess.Popen(
        command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def stop_when(process: Any, ready: Callable[[], bool], number: signal.Signals) -> str:
    """Send a signal as soon as something is there; what the process then says."""
    deadline = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == STATUS[number], said
    assert "Traceback" not in said
    lines: list[str] = [line for line in said.splitlines() if line.strip()]
    assert lines[-1].startswith(f"{number.name}: ")
    assert lines[-1].endswith("give the same command again to go on")
    return lines[-1]


def outcome(outputs: Path) -> tuple[Any, dict[str, torch.Tensor]]:
    (row,) = load(outputs / "rows")
    curve = [{**point, "seconds": 0} for point in row["training"]["curve"]]
    return (row["scores"], curve), load_file(outputs / "runs" / row["run_id"] / "model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("overrides", [NER, LM], ids=["ner", "lm"])
def test_a_signal_in_training_saves_the_state_and_the_same_command_ends_in_the_same_weights(
    tmp_path: Path, overrides: tuple[str, ...], number: signal.Signals
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert start(whole, *overrides).wait(timeout=300) == 0
    said = stop_when(start(stopped, *overrides), lambda: any(stopped.glob("runs/*.partial/model.safetensors")), number)
    assert "training is saved after" in said
    assert list(stopped.glob(f"runs/*.partial/{STATE}"))
    assert not list(stopped.glob("rows/*.json"))
    assert not list(stopped.glob("runs/*.lock"))
    assert start(stopped, *overrides).wait(timeout=300) == 0
    (expected, weights), (found, same) = outcome(whole), outcome(stopped)
    assert found == expected
    assert all(torch.equal(same[name], weights[name]) for name in weights)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_an_import_that_catches_every_exception_ends_the_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "catching.py").write_text(
        "import os, time\n"
        f"try:\n    os.kill(os.getpid(), {number:d})\n    time.sleep(5)\n"
        "except BaseException:\n    pass\n"
    )
    program = "from elmo_tasks import interrupts; interrupts.install(); import catching; print('went on')"
    environment = {**os.environ, "PYTHONPATH": f"{REPO}:{tmp_path}"}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == STATUS[number]
    assert ended.stderr == f"{number.name}: what was finished before is kept; give the same command again to go on\n"
    assert not ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.0])
def test_a_signal_during_the_imports_is_one_sentence(tmp_path: Path, number: signal.Signals, seconds: float) -> None:
    began = time.monotonic()
    stop_when(start(tmp_path), lambda: time.monotonic() - began > seconds, number)


@pytest.mark.slow
def test_a_signal_ends_a_sweep_and_not_only_its_cell(tmp_path: Path) -> None:
    sweep = start(tmp_path, "-m", *NER, "seed=1,2")
    stop_when(sweep, lambda: any(tmp_path.glob("runs/*.partial/model.safetensors")), signal.SIGTERM)
    assert len(list(tmp_path.glob("runs/*.partial"))) == 1
