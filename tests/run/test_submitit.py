"""A sweep through submitit, with its local executor: one job is killed, and the same command resumes it."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from attack.children import Child, start_run
from rows_as_json import load

from elmo_tasks.training.checkpoint import STATE

pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra slurm")

NER = [
    "task=ner",
    "elmo.placement=none",
    "words=random",
    "data.fraction=0.2",
    "trainer.max_epochs=4",
    "trainer.patience=null",
    "task.training.batch_size=8",
]
SWEEP = ["-m", "hydra/launcher=submitit_local", "hydra.launcher.timeout_min=30", "hydra.launcher.cpus_per_task=1"]


def start(folder: Path, *overrides: str) -> Child:
    quiet = ["trainer.threads=1", "trainer.progress=false", "trainer.accelerator=cpu", f"paths.outputs={folder}"]
    folder.mkdir(exist_ok=True)
    return Child(lambda: start_run([*overrides, *NER, *quiet]), folder / "log.txt")


def kill_a_job(folder: Path) -> str:
    """Kill, without warning, the process of a run that has saved a state; the run's name."""
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline:
        for state in folder.glob(f"runs/*.partial/{STATE}"):
            run_id = state.parent.name.removesuffix(".partial")
            lock = folder / "runs" / f"{run_id}.lock"
            if lock.exists() and (holder := json.loads(lock.read_text() or "{}")):
                os.kill(int(holder["pid"]), signal.SIGKILL)
                return run_id
        time.sleep(0.05)
    raise AssertionError("no run has saved a state")


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    curve = [{**point, "seconds": 0} for point in row["training"]["curve"]]
    return {"scores": row["scores"], "weights": row["weights"], "curve": curve}


@pytest.mark.slow
def test_a_killed_job_of_a_sweep_is_resumed_by_the_same_command(tmp_path: Path) -> None:
    first = start(tmp_path / "sweep", *SWEEP, "seed=1,2")
    killed = kill_a_job(tmp_path / "sweep")
    assert first.wait(400) not in (0, None), first.output()
    again = start(tmp_path / "sweep", *SWEEP, "seed=1,2")
    assert again.wait(400) == 0, again.output()
    rows = {row["run_id"]: row for row in load(tmp_path / "sweep" / "rows")}
    assert {row["seed"] for row in rows.values()} == {1, 2}
    assert {row["status"] for row in rows.values()} == {"finished"}
    assert rows[killed]["training"]["resumed_after"]
    whole = start(tmp_path / "whole", f"seed={rows[killed]['seed']}")
    assert whole.wait(400) == 0, whole.output()
    [row] = load(tmp_path / "whole" / "rows")
    assert comparable(row) == comparable(rows[killed])
