"""Start runs: each in its own process with its own log, a few at a time."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elmo_tasks import interrupts
from elmo_tasks.tables.list_jobs import Job

PROGRAM = (sys.executable, "-m", "elmo_tasks.cli.run")
_PAUSE = 0.1  # seconds between two checks of the processes


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    log: Path
    start: float


def run_jobs(
    jobs: Sequence[Job], *, at_a_time: int, logs: Path, extra: tuple[str, ...], launcher: tuple[str, ...]
) -> list[Job]:
    """Run all jobs; one that fails does not stop the others.

    A run that was killed leaves no row; run again, it is resumed where its state was last saved, so that ending this
    process loses nothing. Ctrl-C and SIGTERM end its runs too; after SIGKILL they keep running by themselves.

    Args:
        jobs: from :func:`~elmo_tasks.tables.plan.plan`; ensembles start when all the others have ended.
        at_a_time: processes.
        logs: folder for what the runs print.
        extra: overrides for all jobs that change no score.
        launcher: overrides of Hydra's own, such as ``hydra/launcher=submitit_slurm``.

    Returns:
        the jobs that failed.
    """
    waiting, running, failed = list(jobs), list[_Running](), list[Job]()
    logs.mkdir(parents=True, exist_ok=True)
    with interrupts.deferred(), _ending(running):
        while waiting or running:
            if interrupts.received() is not None:  # looked at here, where every process that was started is known
                interrupts.end("the runs save their state")
            while waiting and len(running) < at_a_time and not (waiting[0].ensemble and _training(running)):
                running.append(_start(waiting.pop(0), logs, extra, launcher))
            time.sleep(_PAUSE)
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                if one.process.returncode:
                    failed.append(one.job)
                _report(one, done=len(jobs) - len(waiting) - len(running), n=len(jobs))
    return failed


def _training(running: list[_Running]) -> bool:
    return any(not one.job.ensemble for one in running)


def _start(job: Job, logs: Path, extra: tuple[str, ...], launcher: tuple[str, ...]) -> _Running:
    log = logs / f"{job.name}.log"
    command = [*PROGRAM, *job.arguments(extra, launcher)]
    log.unlink(missing_ok=True)
    with log.open("xb") as file:  # through no link that someone else put there
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    return _Running(job, process, log, time.monotonic())


def _report(one: _Running, *, done: int, n: int) -> None:
    """Print a line for a job that has ended."""
    seconds = f"{time.monotonic() - one.start:.0f} s"
    if one.process.returncode == 0:
        print(f"[{done}/{n}] {one.job.name}: {seconds}", flush=True)
        return
    lines = [line for line in one.log.read_text("utf-8", "replace").splitlines() if line.strip()]
    reason = next((line for line in reversed(lines) if line.startswith("error: ")), lines[-1] if lines else "no output")
    print(f"[{done}/{n}] {one.job.name}: failed after {seconds}: {reason} (see {one.log})", flush=True)


@contextmanager
def _ending(running: list[_Running]) -> Iterator[None]:
    """At the end, whatever it is, the processes that are still running are told to save their state and end."""
    try:
        yield
    finally:
        for one in running:
            one.process.terminate()
        for one in running:
            one.process.wait()
