"""``python -m elmo_tasks.bilm dump TEXT OUT.hdf5``: all layers of a text, for other frameworks."""

from __future__ import annotations

import argparse
from pathlib import Path

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.cli.dump import dump
from elmo_tasks.command_line import run_command


def main(arguments: list[str]) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m elmo_tasks.bilm")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("dump", help="write all layers of a text in bilm-tf's HDF5 layout")
    command.add_argument("text", type=Path, help="one tokenised sentence a line, plain, .xz, .gz or .bz2")
    command.add_argument("out", type=Path, help="dataset K has the layers [L, T, D] of line K, from 0")
    command.add_argument("--bilm", default="mini", help="mini, small, mini_ko, or a folder with its two files")
    command.add_argument("--state", default="reset", choices=("reset", "carry"))
    chosen = parser.parse_args(arguments)
    n_tokens = dump(BiLM.load(chosen.bilm), chosen.text, chosen.out, chosen.state)
    print(f"{chosen.out}: {n_tokens:,} tokens")


if __name__ == "__main__":
    run_command(main)
