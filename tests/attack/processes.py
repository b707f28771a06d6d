"""Kills at random moments, signals, second starts and full disks; every result must be that of an undisturbed run."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elmo_tasks import interrupts
from elmo_tasks.errors import UserError

from .children import Child
from .scenarios import NER, SCENARIOS, Outcome, Scenario, command, difference, save_bilm

PATIENCE = 600.0
"""Seconds that any run may take."""


@dataclass
class Attacks:
    """What became of some attacks: how many there were by name, and what went wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def judge(self, name: str, problem: str) -> None:
        self.counts[name] += 1
        if problem:
            self.defects.append(f"{name}: {problem}")


class Reference:
    """An undisturbed run of a scenario: what it leaves, and how long it takes."""

    def __init__(self, name: str, folder: Path) -> None:
        self.scenario: Scenario = SCENARIOS[name]
        save_bilm(folder)
        whole = folder / f"whole-{name.replace(' ', '-')}"
        prepared(self.scenario, whole)
        start = time.monotonic()
        finished(self.scenario, whole)
        self.seconds = time.monotonic() - start
        self.outcome: Outcome = self.scenario.outcome(whole)


def prepared(scenario: Scenario, folder: Path) -> None:
    """Make the folder, with what is there before the attack."""
    folder.mkdir(parents=True)
    if scenario.prepare is not None:
        _succeed(Child(lambda: scenario.prepare(folder), folder / "log.txt"))


def finished(scenario: Scenario, folder: Path) -> None:
    """Run to the end."""
    _succeed(Child(lambda: scenario.run(folder), folder / "log.txt"))


def _succeed(child: Child) -> None:
    status = child.wait(PATIENCE)
    child.end()
    if status != 0:
        raise AssertionError(f"status {status}: {child.output()[-500:]}")


def kill(name: str, reference: Reference, folder: Path, n_kills: int, rng: random.Random, attacks: Attacks) -> None:
    """Kill a run some times, each time it goes on, then let it end; what it leaves must be the undisturbed.

    Only kills that hit a running process count.
    """
    scenario = reference.scenario
    prepared(scenario, folder)
    problem = ""
    for _ in range(n_kills):
        child = Child(lambda: scenario.run(folder), folder / "log.txt")
        if child.wait(rng.uniform(0.02, 1.0) * reference.seconds) is not None:
            break  # it has ended: nothing is left to kill
        child.signal(signal.SIGKILL, group=name != "table" or rng.random() < 0.5)
        child.wait(30)
        attacks.counts[f"kill: {name}"] += 1
        try:
            scenario.whole(folder)
        except (AssertionError, ValueError, OSError, UserError) as error:
            problem = problem or f"after a kill: {error!r}"
    try:
        for _ in range(20):  # orphans of a killed table may still hold their runs
            child = Child(lambda: scenario.run(folder), folder / "log.txt")
            if child.wait(PATIENCE) == 0 or name != "table":
                break
            time.sleep(2)
        child.end()
        if child.status != 0:
            problem = problem or f"status {child.status}: {child.output()[-500:]}"
        problem = problem or difference(scenario.outcome(folder), reference.outcome)
    except (AssertionError, ValueError, OSError, UserError) as error:
        problem = problem or repr(error)
    attacks.judge(f"resumed: {name}", problem)


def interrupt(name: str, reference: Reference, folder: Path, rng: random.Random, attacks: Attacks) -> None:
    """One of the signals: its status, one sentence, no traceback; then the run goes on to the same end."""
    number = rng.choice(interrupts.SIGNALS)
    status, scenario, problem = 128 + number, reference.scenario, ""
    prepared(scenario, folder)
    child = Child(lambda: scenario.run(folder), folder / "log.txt")
    child.wait(rng.uniform(0.05, 0.9) * reference.seconds)
    sent = child.poll() is None
    child.signal(number)
    child.wait(60)
    if sent and child.status not in (status, 0):  # it may have been ending
        problem = f"{number.name}: status {child.status}, expected {status}: {child.output()[-300:]}"
    elif "Traceback" in child.output():
        problem = f"{number.name}: a traceback: {child.output()[-500:]}"
    child.end()
    try:
        finished(scenario, folder)
        problem = problem or difference(scenario.outcome(folder), reference.outcome)
    except AssertionError as error:
        problem = problem or str(error)
    attacks.judge(f"signal: {name}", problem)


def start_twice(reference: Reference, folder: Path, wait: bool, rng: random.Random, attacks: Attacks) -> None:
    """The same run twice, one a little later: one makes it, the other waits or ends in a sentence."""
    folder.mkdir(parents=True)
    run = command(*NER, f"if_running={'wait' if wait else 'refuse'}")
    children = []
    for k in range(2):
        children.append(Child(lambda: run(folder), folder / f"log-{k}.txt"))
        time.sleep(rng.uniform(0, 0.5) * reference.seconds)
    statuses = [child.wait(PATIENCE) for child in children]
    output = "".join(child.output() for child in children)
    for child in children:
        child.end()
    problem = difference(reference.scenario.outcome(folder), reference.outcome)
    if "Traceback" in output:
        problem = f"a traceback: {output[-500:]}"
    elif 0 not in statuses or (wait and statuses != [0, 0]):
        problem = f"statuses {statuses}: {output[-300:]}"
    attacks.judge(f"started twice, {'waiting' if wait else 'refused'}", problem)


@contextlib.contextmanager
def small_disk(folder: Path, n_kilobytes: int) -> Iterator[Path]:
    """A file system of this size at a folder; needs root.

    Raises:
        PermissionError: if it cannot be mounted.
    """
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={n_kilobytes}k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        raise PermissionError("a small file system cannot be mounted")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill_disk(reference: Reference, folder: Path, n_kilobytes: int, attacks: Attacks) -> None:
    """A run on a small disk ends in a sentence; with room it goes on, or starts anew, to the same end."""
    name = "full disk"
    shutil.copytree(folder.parent / "bilm", folder / "bilm", dirs_exist_ok=True)
    try:
        with small_disk(folder / "small", n_kilobytes) as small:
            run = command(*NER)
            child = Child(lambda: run(small), folder / "log.txt")
            status = child.wait(PATIENCE)
            child.end()
            output = child.output()
            kept = folder / "kept"
            shutil.copytree(small, kept, symlinks=True)
    except PermissionError:
        attacks.counts[f"{name} (skipped: no small file system)"] += 1
        return
    problem = f"a traceback with {n_kilobytes} KB: {output[-600:]}" if "Traceback" in output else ""
    if status != 0 and not problem and "error: " not in output:
        problem = f"status {status} without a sentence: {output[-300:]}"
    try:
        _succeed(Child(lambda: run(kept), folder / "log.txt"))
        problem = problem or difference(reference.scenario.outcome(kept), reference.outcome)
    except (AssertionError, UserError) as error:
        problem = problem or f"with room, after {n_kilobytes} KB: {error}"
    attacks.judge(name, problem)
