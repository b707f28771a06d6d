"""``python -m tests.net record|compare PART ...``: see README.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import ids, predictions, sentences, texts, weights
from .checkout import Checkout, opened
from .recordings import differences, read, write

PARTS: dict[str, Callable[[Checkout], dict[str, Any]]] = {
    "ids": ids.record,
    "texts": texts.record,
    "sentences": sentences.record,
    "weights": weights.record,
    "predictions": predictions.record,
}


def main() -> int:
    """The command line; 1 if something differs."""
    given = _parser().parse_args()
    chosen = [*PARTS] if given.parts == ["all"] else given.parts
    if unknown := [part for part in chosen if part not in PARTS]:
        sys.exit(f"unknown part {unknown[0]}; expected one of {', '.join(PARTS)}, or all")
    done = True
    for part in chosen:
        with opened(given.checkout, given.python) as checkout:
            done &= (_record if given.command == "record" else _compare)(part, checkout)
        used = os.times()
        print(f"{used.children_user + used.children_system:.0f} CPU seconds so far", file=sys.stderr)
    return int(not done)


def _parser() -> argparse.ArgumentParser:
    here = Path(__file__).parents[2]
    parser = argparse.ArgumentParser("python -m tests.net", description="What a restructuring must not change.")
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("parts", nargs="+", metavar="PART", help=f"one or more of {', '.join(PARTS)}, or all")
    parser.add_argument("--python", default=sys.executable, metavar="EXE", help="of an environment (default: this one)")
    parser.add_argument("--checkout", type=Path, default=here, help="whose code is run (default: this one)")
    return parser


def _record(part: str, checkout: Checkout) -> bool:
    found = PARTS[part](checkout)
    print(f"{part}: {len(found)} recorded in {write(part, found)}", flush=True)
    return True


def _compare(part: str, checkout: Checkout) -> bool:
    before = read(part)
    if before.get("machine", checkout.machine()) != checkout.machine():
        said = f"recorded with {before['machine']}, here is {checkout.machine()}: record the older commit here first"
        print(f"{part}: {said}", flush=True)
        return False
    different = differences(before, PARTS[part](checkout))
    print("\n".join([f"{part}: {len(different) or 'nothing'} differs", *different[:40]]), flush=True)
    return not different


if __name__ == "__main__":
    sys.exit(main())
