"""Damaged copies of an input: each must end in one short sentence, or be read."""

import random
import resource
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from elmo_tasks.errors import UserError

from .damage import damaged, damaged_json
from .inputs import INPUTS

MAX_MESSAGE = 300
MAX_SECONDS = 15.0
MAX_BYTES = 300e6


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
            path = copy / rng.choice(names)
            change = damaged_json if chosen.is_json else damaged
            path.write_bytes(change(path.read_bytes(), rng))
            result = _read(kind, copy)
            outcome.counts["defect" if result not in ("refused", "read") else result] += 1
            if result not in ("refused", "read"):
                outcome.defects.append(f"{kind} {seed}: {result}")
            shutil.rmtree(copy)
    return outcome


def _read(kind: str, folder: Path) -> str:
    """``refused``, ``read``, or what is wrong."""
    start, memory = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
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


def _judge(message: str, folder: Path) -> str:
    """Whether a refusal is one short sentence that names the file."""
    if len(message) - message.count(str(folder)) * len(str(folder)) > MAX_MESSAGE:
        return f"a message of {len(message)} characters: {message[:400]}"
    if "\n" in message:
        return f"a message of several lines: {message}"
    return "refused"
