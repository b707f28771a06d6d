"""Damaged copies of an input: each must end in one short sentence, or be read."""

import random
import resource
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from elmo_tasks.errors import MAX_SENTENCE, UserError

from .damage import N_REPLACEMENTS, damaged, damaged_json, replaced
from .inputs import INPUTS

MAX_SECONDS = 15
MAX_BYTES = 300e6
PERIOD = 25
"""Of so many copies the first ones are replaced by something that is no such file."""


@dataclass
class Outcome:
    """What became of some copies."""

    counts: Counter[str] = field(default_factory=Counter)
    """By ``refused``, ``read`` and ``defect``."""
    defects: list[str] = field(default_factory=list)


def attack(kind: str, seeds: range) -> Outcome:
    """Damage an input once for each seed and read it."""
    chosen, outcome = INPUTS[kind], Outcome()
    with tempfile.TemporaryDirectory() as parent:
        original = Path(parent) / "original"
        original.mkdir()
        names = [path.relative_to(original) for path in chosen.make(original)]
        chosen.read(original)  # a whole one is no defect
        for seed in seeds:
            rng = random.Random(f"{kind}-{seed}")
            copy = Path(parent) / "copy"
            shutil.copytree(original, copy)
            _damage(copy / rng.choice(names), seed % PERIOD, rng)
            result = _read(kind, copy)
            outcome.counts["defect" if result not in ("refused", "read") else result] += 1
            if result not in ("refused", "read"):
                outcome.defects.append(f"{kind} {seed}: {result}")
            shutil.rmtree(copy)
    return outcome


def _damage(path: Path, k: int, rng: random.Random) -> None:
    if k < N_REPLACEMENTS:
        replaced(path, k)
        return
    change = damaged_json if path.suffix == ".json" else damaged
    path.write_bytes(change(path.read_bytes(), rng))


def _read(kind: str, folder: Path) -> str:
    """``refused``, ``read``, or what is wrong."""
    start, memory = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with limits(4 * MAX_SECONDS, 4 * 2**30):
            INPUTS[kind].read(folder)
        result = "read"
    except UserError as error:
        result = _judge(str(error), folder)
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    seconds = time.perf_counter() - start
    n_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
    if seconds > MAX_SECONDS:
        return f"{seconds:.1f} seconds"
    if n_bytes > MAX_BYTES:
        return f"{n_bytes / 1e6:.0f} MB"
    return result


@contextmanager
def limits(seconds: int, n_bytes: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer, and MemoryError in what asks for so many bytes more."""

    def end(number: int, frame: object) -> None:
        raise TimeoutError(f"still reading after {seconds} seconds")

    there = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    resource.setrlimit(resource.RLIMIT_AS, (there + n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _judge(message: str, folder: Path) -> str:
    """Whether a refusal is one short sentence that names the file."""
    if str(folder) not in message:
        return f"a message without the file: {message[:400]}"
    if len(message) - message.count(str(folder)) * len(str(folder)) > MAX_SENTENCE:
        return f"a message of {len(message)} characters: {message[:400]}"
    if not message.isprintable():
        return f"a message of several lines: {message}"
    return "refused"
