"""Sweeps through submitit: what Slurm refuses as a sentence, and jobs that are watched where Slurm keeps no accounting.

Imported only for such a sweep: it needs the extra ``slurm``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from submitit.core.utils import FailedSubmissionError, UncompletedJobError
from submitit.slurm.slurm import SlurmInfoWatcher, SlurmJob

from elmo_tasks.errors import UserError, shortened

_ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}
"""States of a job that does not run again by itself."""
_SECONDS = 60
"""At most so long after a job has ended without a result, the sweep notices it."""


class QueueWatcher(SlurmInfoWatcher):
    """Asks ``squeue`` for the states of jobs, as submitit otherwise asks ``sacct``."""

    def _make_command(self) -> list[str] | None:
        options = ["--states=all", "--array", "--noheader", "--format=%i|%T"]
        return ["squeue", f"--user={os.getuid()}", *options] if self._registered - self._finished else None

    def read_info(self, string: bytes | str) -> dict[str, dict[str, str]]:
        """The state of each job; one that Slurm has forgotten has ended."""
        text = string if isinstance(string, str) else string.decode()
        states = dict(line.split("|", 1) for line in text.splitlines() if "|" in line)
        found = {job: states.get(job, "COMPLETED") for job in self._registered}
        return {job: {"State": state if state in _ENDED else "RUNNING"} for job, state in found.items()}


def watch_queue_without_accounting() -> None:
    """Let submitit ask ``squeue`` where ``sacct`` does not answer: it would warn at each look, and wait for ever."""
    if shutil.which("squeue") is None:  # there is no Slurm, as submitit is about to say
        return
    try:
        answers = subprocess.run(["sacct", "--noheader", "--jobs=1"], capture_output=True, check=False).returncode == 0
    except OSError:
        answers = False
    if not answers and not isinstance(SlurmJob.watcher, QueueWatcher):
        SlurmJob.watcher = QueueWatcher(delay_s=_SECONDS)
        print("note: Slurm keeps no accounting here (sacct); the jobs are watched by squeue", file=sys.stderr)


def launcher_error(error: Exception) -> UserError | None:
    """What submitit says, as a sentence for the user; None for any other error."""
    text = str(error)
    no_srun = text.startswith('Could not detect "srun"')
    if no_srun or (isinstance(error, FileNotFoundError) and error.filename == "sbatch"):
        program = "srun" if no_srun else "sbatch"
        return UserError(
            f"hydra/launcher=submitit_slurm needs Slurm, but there is no `{program}` here; use hydra/launcher=joblib"
        )
    if isinstance(error, FailedSubmissionError) or (isinstance(error, UncompletedJobError) and "sbatch: " in text):
        reasons = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in text.splitlines() if line.strip()]
        return UserError(
            f"hydra/launcher=submitit_slurm: Slurm refuses the job ({shortened(reasons[-1], 160)}); `sinfo` shows "
            "whether Slurm answers and its partitions, hydra.launcher.partition=NAME chooses one"
        )
    if isinstance(error, UncompletedJobError):
        found = re.search(r"Job (\S+) \(task: \d+\) with path (.+)\nhas not produced any output \(state: (\w+)\)", text)
        what = f"job {found[1]} has ended without a result ({found[3]}; see {Path(found[2]).parent})" if found else ""
        trace = [line for line in text.splitlines() if line.startswith("submitit.")]  # its own reason, such as the time
        what = what or f"a job has failed ({shortened(trace[-1] if trace else text, 160)})"
        return UserError(f"{what}; run the same command again to resume what is not finished")
    return None
