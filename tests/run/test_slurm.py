"""Runs on a real Slurm: signals save the state, a job that is requeued goes on, two tasks train together.

They are skipped where Slurm does not answer. A cluster of one node does; a test of preemption also needs two partitions
of which one preempts the other's jobs (``PreemptType=preempt/partition_prio``, ``PreemptMode=REQUEUE``).
"""

import os
import re
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
NER = (
    *("task=ner", "elmo.placement=none", "words=random", "data.fraction=0.1", "trainer.patience=null"),
    *("trainer.threads=1", "trainer.progress=false", "trainer.accelerator=cpu"),
)
LONG, SHORT = ("trainer.max_epochs=5000",), ("trainer.max_epochs=8",)


def ask(*command: str) -> str:
    """What a command of Slurm prints; empty if there is none or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


pytestmark = [pytest.mark.slow, pytest.mark.skipif(not ask("sinfo", "--noheader"), reason="needs Slurm")]


class Job:
    """A job of some lines of shell, in a folder with its log."""

    def __init__(self, folder: Path, script: str, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.log = folder, folder / "job.log"
        (folder / "job.sh").write_text(f"#!/bin/bash\n{script}\n")
        own = ["sbatch", "--parsable", "--open-mode=append", f"--output={self.log}", f"--chdir={folder}"]
        environment = {**os.environ, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"}
        command = [*own, *options, str(folder / "job.sh")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        self.number = done.stdout.strip()

    def about(self, key: str) -> str:
        """What Slurm says of the job."""
        found = re.search(rf"\b{key}=(\S+)", ask("scontrol", "show", "job", self.number, "--oneliner"))
        return found[1] if found else ""

    def wait(self, seconds: float = 400) -> str:
        """What it has printed when it has ended."""
        wait_for(lambda: self.about("JobState") not in ("PENDING", "RUNNING", "COMPLETING", "REQUEUED"), seconds)
        return self.log.read_text() if self.log.exists() else ""

    def wait_until_saved(self) -> None:
        wait_for(lambda: any(self.folder.glob(f"out*/runs/*.partial/{STATE}")) or self.ended())

    def ended(self) -> bool:
        return self.about("JobState") not in ("PENDING", "RUNNING")


def program(*overrides: str, start: str = "srun ") -> str:
    return f"{start}{sys.executable} {REPO / 'run.py'} {' '.join([*NER, *overrides])} paths.outputs=out"


def wait_for(ready: Callable[[], bool], seconds: float = 400) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def begin_now(number: str) -> None:
    """Let a job that was requeued begin; Slurm would wait for two minutes."""

    def begins() -> bool:
        subprocess.run(["scontrol", "update", f"jobid={number}", "starttime=now"], capture_output=True, check=False)
        return "JobState=PENDING" not in ask("scontrol", "show", "job", number, "--oneliner")

    wait_for(lambda: "JobState=PENDING" in ask("scontrol", "show", "job", number, "--oneliner"))
    wait_for(begins)


def assert_saved(job: Job, name: str, status: int) -> None:
    """It ended by a signal: saved, in one sentence, without a file that Lightning would start a later run from."""
    said = job.wait()
    assert re.findall(rf"{name}: training is saved after [\d,]+ updates", said), said
    assert said.count("run the same command again to resume") == 1
    assert f"exit code {status}" in said
    assert "Traceback" not in said
    assert [*job.folder.glob(f"out/runs/*.partial/{STATE}")]
    assert not [*job.folder.glob("out/rows/*")]
    assert not [*job.folder.rglob("hpc_ckpt*")]
    assert job.about("Restarts") == "0"


def test_a_time_limit_saves_and_ends_with_143(tmp_path: Path) -> None:
    job = Job(tmp_path / "job", program(*LONG), "--time=1")
    assert_saved(job, "SIGTERM", 143)
    assert job.about("JobState") == "TIMEOUT"


def test_a_signal_before_the_time_limit_saves(tmp_path: Path) -> None:
    assert_saved(Job(tmp_path / "job", program(*LONG), "--time=2", "--signal=USR1@30"), "SIGUSR1", 138)


@pytest.mark.parametrize(("options", "name", "status"), [((), "SIGTERM", 143), (("--signal=USR2",), "SIGUSR2", 140)])
def test_scancel_saves(tmp_path: Path, options: tuple[str, ...], name: str, status: int) -> None:
    job = Job(tmp_path / "job", program(*LONG))
    job.wait_until_saved()
    subprocess.run(["scancel", *options, job.number], check=True)
    assert_saved(job, name, status)


def test_the_batch_script_can_be_the_run_itself(tmp_path: Path) -> None:
    job = Job(tmp_path / "job", program(*LONG, start="exec "), "--ntasks=1")
    job.wait_until_saved()
    subprocess.run(["scancel", "--batch", "--signal=USR1", job.number], check=True)
    assert "SIGUSR1: training is saved after" in job.wait()
    assert job.about("ExitCode") == "138:0"
    assert not [*job.folder.rglob("hpc_ckpt*")]


def requeue(job: Job) -> None:
    subprocess.run(["scontrol", "requeue", job.number], check=True)


def preempt(job: Job) -> None:
    tiers = dict(re.findall(r"PartitionName=(\S+).*?PriorityTier=(\d+)", ask("scontrol", "show", "partition", "-o")))
    higher = [name for name, tier in tiers.items() if int(tier) > int(tiers[job.about("Partition")])]
    if not higher or not re.search(r"PreemptMode\s*=\s*REQUEUE", ask("scontrol", "show", "config")):
        subprocess.run(["scancel", job.number], check=True)
        pytest.skip("Slurm preempts nothing here")
    Job(job.folder.parent / "urgent", "sleep 1", f"--partition={higher[0]}", "--exclusive")


@pytest.mark.parametrize("stop", [requeue, preempt])
def test_a_job_that_is_requeued_goes_on_to_the_same_end(tmp_path: Path, stop: Callable[[Job], None]) -> None:
    job = Job(tmp_path / "job", program(*SHORT), "--requeue")
    job.wait_until_saved()
    stop(job)
    wait_for(lambda: job.about("Restarts") == "1")
    begin_now(job.number)
    said = job.wait()
    assert job.about("JobState") == "COMPLETED", said
    assert "Traceback" not in said
    whole = Job(tmp_path / "whole", program(*SHORT))
    assert "Traceback" not in whole.wait()
    row, weights = outcome(job.folder / "out")
    expected, same = outcome(whole.folder / "out")
    assert row["training"]["resumed_after"]
    assert not expected["training"]["resumed_after"]
    assert row["scores"] == expected["scores"]
    assert all(torch.equal(weights[name], value) for name, value in same.items())


def outcome(outputs: Path, seed: int = 1) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    (row,) = (row for row in load(outputs / "rows") if row["seed"] == seed)
    return row, load_file(outputs / "runs" / row["run_id"] / "model.safetensors")


@pytest.mark.parametrize("tasks", [("--ntasks=2",), ("--nodes=1", "--ntasks-per-node=2")])
def test_two_tasks_train_together(tmp_path: Path, tasks: tuple[str, ...]) -> None:
    job = Job(tmp_path / "job", program("trainer.max_epochs=2", "trainer.devices=2"), *tasks)
    said = job.wait()
    assert job.about("JobState") == "COMPLETED", said
    row, _ = outcome(job.folder / "out")
    assert (row["processes"], row["status"]) == (2, "finished")


def test_two_tasks_that_get_a_signal_save_together(tmp_path: Path) -> None:
    job = Job(tmp_path / "job", program(*LONG, "trainer.devices=2"), "--ntasks=2")
    job.wait_until_saved()
    subprocess.run(["scancel", "--signal=USR1", job.number], check=True)
    assert_saved(job, "SIGUSR1", 138)


def test_tasks_that_do_not_fit_are_a_sentence_at_once(tmp_path: Path) -> None:
    script = "\n".join(
        [program("trainer.devices=2", start=""), program(start=""), program("trainer.num_nodes=2", "trainer.devices=2")]
    )
    lines = Job(tmp_path / "job", script, "--ntasks=2").wait().splitlines()
    sentences = list(dict.fromkeys(line for line in lines if line.startswith("error: ")))
    assert sentences == [
        "error: Slurm gives 2 tasks, but only one of them runs: start the run by srun, as in srun elmo-tasks run ...",
        "error: Slurm gives 2 tasks, trainer.devices=1 is one: #SBATCH --ntasks=1 (threads are --cpus-per-task)",
        "error: Slurm gives 2 tasks on 1 node, trainer.devices=2 with trainer.num_nodes=2 is 4: #SBATCH --nodes=2 "
        "--ntasks-per-node=2, and start the run by srun",
    ]
    assert not [*tmp_path.glob("job/out/r*")]


def sweep(folder: Path, *overrides: str) -> list[str]:
    launcher = ["hydra/launcher=submitit_slurm", "hydra.launcher.timeout_min=30", "hydra.launcher.cpus_per_task=1"]
    return [sys.executable, str(REPO / "run.py"), "-m", *launcher, *NER, *overrides, f"paths.outputs={folder / 'out'}"]


def test_an_array_of_jobs_one_of_which_submitit_requeues(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra slurm")
    environment = {**os.environ, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"}
    with (tmp_path / "log.txt").open("w") as log:
        command = sweep(tmp_path, *SHORT, "seed=1,2")
        parent = subprocess.Popen(command, stdout=log, stderr=log, cwd=tmp_path, env=environment)
    wait_for(lambda: any(tmp_path.glob(f"out/runs/*s1-*.partial/{STATE}")))
    (number,) = (path.name for path in tmp_path.glob("out/hydra/*/.submitit/*_0"))
    subprocess.run(["scancel", "--signal=USR2", number], check=True)
    wait_for(lambda: "Restarts=1" in ask("scontrol", "show", "job", number, "--oneliner"))
    begin_now(number)
    assert parent.wait(400) == 0, (tmp_path / "log.txt").read_text()
    said, logs = (tmp_path / "log.txt").read_text(), "".join(p.read_text() for p in tmp_path.rglob("*_0_log.err"))
    assert "Traceback" not in said + logs
    assert "sacct error" not in said
    assert said.count("no accounting") <= 1
    assert logs.index("SIGUSR2: training is saved after") < logs.index("Caught signal SIGUSR2")  # saved first
    whole = Job(tmp_path / "whole", program(*SHORT))
    whole.wait()
    (row, weights), (expected, same) = outcome(tmp_path / "out"), outcome(whole.folder / "out")
    assert row["training"]["resumed_after"]
    assert row["scores"] == expected["scores"]
    assert all(torch.equal(weights[name], value) for name, value in same.items())


@pytest.mark.parametrize("refused", ["hydra.launcher.partition=nowhere", "hydra.launcher.constraint=nothing"])
def test_a_submission_that_slurm_refuses_is_a_sentence(tmp_path: Path, refused: str) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra slurm")
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    command = sweep(tmp_path, refused, "seed=1,2")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    *notes, sentence = done.stderr.splitlines()
    assert done.returncode == 1
    assert sentence.startswith(
        "error: hydra/launcher=submitit_slurm: Slurm refuses the job (Batch job submission failed"
    )
    assert all(note.startswith(("note: ", "sbatch: error: ")) for note in notes)  # submitit shows what sbatch says
