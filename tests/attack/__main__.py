"""``python -m tests.attack n=5000 kills=100``: thousands of attacks and a table of them; the status is 1 for a defect.

n       damaged copies, of all kinds of input together
kills   kill -9 of training, of a biLM's training, of filling the store, of a sweep, a table, a rerun with force
signals, twice, disks   how many of each
seed    of all random choices
only    kinds of input or scenarios, separated by commas
"""

import random
import shutil
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import torch

from .copies import Outcome, attack
from .inputs import INPUTS
from .processes import Attacks, Reference, fill_disk, interrupt, kill, start_twice
from .scenarios import SCENARIOS

SHARES = {"training": 25, "halved rate": 15, "LM": 15, "store": 20, "sweep": 10, "force": 12, "table": 3}
"""Of a hundred kills."""
AT_ONCE = 5
"""Kills of one run before it is left to end."""


def main(arguments: list[str]) -> int:
    """Run the attacks that the command line asks for."""
    options = {"n": "5000", "kills": "100", "signals": "20", "twice": "10", "disks": "10", "seed": "0", "only": ""}
    for argument in arguments:
        key, _, value = argument.partition("=")
        if key not in options or not value:
            sys.exit(f"error: {argument!r}; expected {', '.join(f'{name}=...' for name in options)}\n\n{__doc__}")
        options[key] = value
    torch.set_num_threads(1)
    numbers = {key: int(value) for key, value in options.items() if key != "only"}
    only = set(options["only"].split(",")) - {""} or {*INPUTS, *SCENARIOS}
    defects = attack_processes(numbers, only)
    return 1 if attack_copies(numbers, only) + defects else 0


def attack_copies(numbers: dict[str, int], only: set[str]) -> int:
    """Damaged copies of each kind of input; a kind that takes its process down is a defect."""
    kinds = [kind for kind in INPUTS if kind in only]
    n, defects = -(-numbers["n"] // max(1, len(kinds))), 0
    for kind in kinds if numbers["n"] else ():
        first = numbers["seed"] * 1_000_000
        try:
            with ProcessPoolExecutor(1, get_context("fork")) as pool:
                outcome = pool.submit(attack, kind, range(first, first + n)).result()
        except Exception as error:
            outcome = Outcome(defects=[f"{kind}: the process ended ({error})"])
        counts = "   ".join(f"{name} {count}" for name, count in sorted(outcome.counts.items()))
        show(f"copies: {kind}", n, len(outcome.defects), counts)
        defects += len(outcome.defects)
        for defect in outcome.defects[:10]:
            print(f"    {defect[:500]}", flush=True)
    return defects


def attack_processes(numbers: dict[str, int], only: set[str]) -> int:
    """Kills, signals, second starts, full disks."""
    rng, attacks = random.Random(numbers["seed"]), Attacks()
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    reference = cache(lambda name: Reference(name, folder))
    for name in SCENARIOS:
        n_kills = round(numbers["kills"] * SHARES[name] / 100) if name in only else 0
        at_once = AT_ONCE if name != "table" else 1
        while (left := n_kills - attacks.counts[f"kill: {name}"]) > 0:
            kill(name, reference(name), fresh(folder), min(at_once, left), rng, attacks)
        if n_kills:
            _tell(attacks)
    names = [name for name in ("training", "LM", "sweep") if name in only]
    for k in range(numbers["signals"] if names else 0):
        interrupt(names[k % len(names)], reference(names[k % len(names)]), fresh(folder), rng, attacks)
    for k in range(numbers["twice"] if "training" in only else 0):
        start_twice(reference("training"), fresh(folder), k % 2 == 0, rng, attacks)
    for _ in range(numbers["disks"] if "training" in only else 0):
        fill_disk(reference("training"), fresh(folder), rng.randint(50, 3000), attacks)
    for name, count in attacks.counts.items():
        show(name, count, sum(defect.startswith(f"{name}:") for defect in attacks.defects), "")
    for defect in attacks.defects:
        print(f"    {defect[:800]}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    return len(attacks.defects)


def fresh(folder: Path) -> Path:
    """A folder that is not there yet."""
    return folder / f"attack-{len(list(folder.iterdir()))}"


def show(name: str, n: int, n_defects: int, more: str) -> None:
    """A line of the table."""
    print(f"{name:<40} {n:>6} attacks {n_defects:>4} defects   {more}", flush=True)


def _tell(attacks: Attacks) -> None:
    print(f"... {attacks.counts.total()} so far, {len(attacks.defects)} defects", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
