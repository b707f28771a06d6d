"""What submitit says is one sentence; without accounting its jobs are watched by ``squeue``."""

from pathlib import Path

import pytest

pytest.importorskip("submitit", reason="needs the extra slurm")

from submitit.core.utils import FailedJobError, FailedSubmissionError, UncompletedJobError
from submitit.slurm.slurm import SlurmInfoWatcher, SlurmJob

from elmo_tasks.cli.slurm import QueueWatcher, launcher_error, watch_queue_without_accounting

NO_PARTITION = (
    "sbatch: error: invalid partition specified: nowhere\n"
    "sbatch: error: Batch job submission failed: Invalid partition name specified"
)
NO_CONTROLLER = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
KILLED = (
    "Job 12_0 (task: 0) with path /out/.submitit/12_0/12_0_0_result.pkl\n"
    "has not produced any output (state: OUT_OF_MEMORY)\nError stream produced:\n----\nsrun: error: task 0: killed"
)
TIMED_OUT = (
    "Job (task=0) failed during processing with trace:\n------\nTraceback (most recent call last):\n  File x\n"
    "submitit.core.utils.UncompletedJobError: Job not requeued because: timed-out too many times.\n\n------\n"
)


@pytest.mark.parametrize(
    ("error", "start"),
    [
        (
            FailedJobError(NO_PARTITION),
            "hydra/launcher=submitit_slurm: Slurm refuses the job (Batch job submission failed: Invalid partition name "
            "specified); `sinfo` shows",
        ),
        (
            FailedJobError(NO_CONTROLLER),
            "hydra/launcher=submitit_slurm: Slurm refuses the job (Batch job submission failed: Unable to contact "
            "slurm controller (connect failure)); `sinfo` shows",
        ),
        (FailedSubmissionError('Could not make sense of sbatch output "x"'), "hydra/launcher=submitit_slurm: Slurm "),
        (FileNotFoundError(2, "No such file or directory", "sbatch"), "hydra/launcher=submitit_slurm needs Slurm"),
        (
            RuntimeError('Could not detect "srun", are you indeed on a slurm cluster?'),
            "hydra/launcher=submitit_slurm n",
        ),
        (
            UncompletedJobError(KILLED),
            "job 12_0 has ended without a result (OUT_OF_MEMORY; see /out/.submitit/12_0); run the same command again",
        ),
        (
            FailedJobError(TIMED_OUT),
            "a job has failed (submitit.core.utils.UncompletedJobError: Job not requeued because",
        ),
    ],
)
def test_errors_of_the_launcher_are_sentences(error: Exception, start: str) -> None:
    sentence = launcher_error(error)
    assert str(sentence).startswith(start)
    assert "..." not in str(sentence)


@pytest.mark.parametrize("error", [RuntimeError("a mistake"), FileNotFoundError(2, "No such file", "data.txt")])
def test_other_errors_are_left_alone(error: Exception) -> None:
    assert launcher_error(error) is None


def test_the_states_of_jobs_come_from_squeue() -> None:
    watcher = QueueWatcher(delay_s=60)
    for job in ("7_0", "7_1", "7_2", "8", "9"):
        watcher.register_job(job)
    found = watcher.read_info("7_0|RUNNING\n7_1|PREEMPTED\n7_2|TIMEOUT\n8|SUSPENDED\n99|FAILED\n")
    states = {job: about["State"] for job, about in found.items()}
    assert states == {"7_0": "RUNNING", "7_1": "RUNNING", "7_2": "TIMEOUT", "8": "RUNNING", "9": "COMPLETED"}
    watcher._info_dict = found
    assert {job for job in states if watcher.is_done(job, mode="cache")} == {"7_2", "9"}


@pytest.mark.parametrize(
    ("programs", "kind"),
    [
        ({}, SlurmInfoWatcher),  # no Slurm at all
        ({"squeue": 0, "sacct": 0}, SlurmInfoWatcher),
        ({"squeue": 0, "sacct": 1}, QueueWatcher),
        ({"squeue": 0}, QueueWatcher),
    ],
)
def test_without_accounting_one_line_is_printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    programs: dict[str, int],
    kind: type,
) -> None:
    for name, status in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho Slurm accounting storage is disabled >&2\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(SlurmJob, "watcher", SlurmInfoWatcher(delay_s=600))
    for _ in range(2):
        watch_queue_without_accounting()
    assert type(SlurmJob.watcher) is kind
    note = "note: Slurm keeps no accounting here (sacct); the jobs are watched by squeue\n"
    assert capfd.readouterr().err == (note if kind is QueueWatcher else "")
