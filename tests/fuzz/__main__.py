"""``python -m tests.fuzz --seeds 3 --kind numbered``: what is made of all generators' inputs; 1 for any defect.

accepted      read, and what was read is what the generator wrote, or what a plain model computes
refused       in one sentence, where that is right
tracebacks    ended in anything else
wrong         read as something else, or refused although it is right, or in more than a sentence
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from elmo_tasks.cli.run import run_composed
from elmo_tasks.errors import UserError
from tests.attack.folders import composed, silence
from tests.attack.kind import TINY, tiny_bilm

from . import columns, environments, rows, run_folders, states, stores, texts
from .case import is_read

N_SESSIONS, N_WEIGHTS, N_ROWS, N_FOLDERS, N_STATES, N_STARTS = 150, 120, 600, 300, 200, 200
"""Of one seed."""
FIRST_SEED = 100
OUTCOMES = ("accepted", "refused", "tracebacks", "wrong")

Trial = tuple[str, Callable[[], bool]]
"""Its kind, and what says whether the input is accepted; AssertionError or UserError where that is wrong."""


def trials(seed: int, folder: Path) -> Iterator[Trial]:
    """All inputs of a seed, read below a folder."""
    for generator in (columns, texts):
        for case in generator.inputs(seed):
            yield case.kind, partial(is_read, case, Path(tempfile.mkdtemp(dir=folder)))
    for k in range(seed * N_SESSIONS, (seed + 1) * N_SESSIONS):
        yield "store_sessions", partial(session, k, folder / f"store-{k % 10}")
    tiny_bilm().save(folder / "bilm")
    for k in range(seed * N_WEIGHTS, (seed + 1) * N_WEIGHTS):
        yield "weight_files", partial(stores.is_edit_read, folder / "bilm", folder / f"bilm-{k}", k)
    for k in range(seed * N_ROWS, (seed + 1) * N_ROWS):
        yield "changed_rows", lambda k=k: rows.read_changed(folder / "rows", k) is not None
    whole = finished(folder / "run")
    for k in range(seed * N_FOLDERS, (seed + 1) * N_FOLDERS):
        yield "changed_run_folders", partial(run_folders.is_changed_read, whole, folder / f"run-{k}", k)
    for k in range(seed * N_STARTS, (seed + 1) * N_STARTS):
        yield "environments", partial(environments.is_started, k)
    one = states.Resumable(folder / "states")
    for k in range(seed * N_STATES, (seed + 1) * N_STATES):
        yield "saved_states", partial(states.is_resumed, one, k, folder)


def session(seed: int, root: Path) -> bool:
    """Whether no call of a session was refused; sessions share a root, as on a real disk."""
    one = stores.Session(seed, TINY, root)
    one.run(9)
    return not any(n for name, n in one.counts.items() if "refused" in name)


def finished(folder: Path) -> Path:
    """A small finished run."""
    small = ["task=sst5", "elmo.placement=none", "bilm.path=null", "data.fraction=0.05"]
    with silence():
        run_composed(composed(folder, *small, "task.model.hidden=5", "task.model.pre_encode=5"))
    return next(path for path in (folder / "outputs" / "runs").iterdir() if path.is_dir())


def outcome(run: Callable[[], bool]) -> tuple[str, str]:
    """One of :data:`OUTCOMES`, and what is to be said about it."""
    try:
        return "accepted" if run() else "refused", ""
    except (AssertionError, UserError, pytest.fail.Exception) as error:
        return "wrong", str(error)
    except Exception as error:
        return "tracebacks", f"{type(error).__name__}: {error}"


def main(arguments: list[str]) -> int:
    """Run the inputs that the command line asks for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how many, of about 4,770 inputs each")
    parser.add_argument("--kind", default="", help="only kinds whose names contain this")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        with patch.object(os, "fsync"):  # no waiting for the disk
            for number, (kind, run) in zip(count(), trials(seed, folder), strict=False):
                if asked.kind not in kind:
                    continue
                result, said = outcome(run)
                found[kind][result] += 1
                if said:
                    print(f"{kind}, input {number} of seed {seed}: {result}: {said[:500]}", file=sys.stderr)
        shutil.rmtree(folder)
    total = sum(found.values(), Counter[str]())
    for name, counts in [("", dict(zip(OUTCOMES, OUTCOMES, strict=True))), *sorted(found.items()), ("all", total)]:
        n = sum(counts.values()) if name else "inputs"
        print(f"{name:<22}{n:>8}" + "".join(f"{counts[each] or 0:>12}" for each in OUTCOMES))
    return 1 if total["tracebacks"] + total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
