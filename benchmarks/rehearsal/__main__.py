"""``python -m benchmarks.rehearsal DIR``: synthetic data and biLM weights of the published sizes, for ``data.root``
and ``bilm.path``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.command_line import run_command
from elmo_tasks.errors import UserError

from .ontonotes import write_ontonotes
from .snli import write_snli
from .squad import write_squad
from .weights import write_bilm

DATA: dict[str, tuple[str, Callable[[Path, float, int], dict[str, int]]]] = {
    "snli": ("pairs", write_snli),
    "squad": ("questions", write_squad),
    "ontonotes": ("documents", write_ontonotes),
}


def main(arguments: list[str]) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rehearsal", description=__doc__)
    parser.add_argument("folder", type=Path, help="for data.root; the biLM goes into its folder bilm-SIZE")
    parser.add_argument("--parts", nargs="+", choices=("bilm", *DATA), default=["bilm", *DATA], help="default: all")
    parser.add_argument("--size", choices=tuple(SIZES), default="original", help="of the biLM")
    parser.add_argument("--share", type=float, default=1.0, help="of each data set, above 0 and at most 1")
    parser.add_argument("--seed", type=int, default=1, help="the same one writes the same files")
    chosen = parser.parse_args(arguments)
    _write(chosen.folder, chosen.parts, chosen.size, chosen.share, chosen.seed)


def _write(folder: Path, parts: list[str], size: str, share: float, seed: int) -> None:
    if not 0 < share <= 1:
        raise UserError(f"--share must be above 0 and at most 1, found {share:g}")
    if seed < 0:
        raise UserError(f"--seed must be 0 or more, found {seed}")
    for part in parts:
        if part == "bilm":
            n_parameters = write_bilm(folder / f"bilm-{size}", size, seed)
            print(f"{folder / f'bilm-{size}'}: {n_parameters / 1e6:.1f} million parameters")
        else:
            noun, write = DATA[part]
            counts = write(folder, share, seed)
            print(f"{part}: " + ", ".join(f"{n:,} {noun} in {split}" for split, n in counts.items()))


if __name__ == "__main__":
    run_command(main)
