"""``elmo-tasks store``: list what the layer store holds, remove what is no longer used, verify checksums."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table

from elmo_tasks.command_line import run_command
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.files import free_bytes
from elmo_tasks.formatting import format_bytes
from elmo_tasks.places import SAMPLE_TEXT
from elmo_tasks.store.inventory import StoredFolder, inventory, removable, remove, verify
from elmo_tasks.store.shard import VERSION

if TYPE_CHECKING:
    from elmo_tasks.encoders.base import Encoder

FOLDER = Path("outputs/layers")
UNITS = {"layers": "sentences", "tokens": "words"}
DIGITS = 8
"""Digits of a digest that are shown; they are enough for ``prune``."""


def main(arguments: list[str]) -> None:
    """The command line.

    Raises:
        UserError: if there is no store, an argument is wrong or something is damaged.
    """
    parser = argparse.ArgumentParser(prog="elmo-tasks store", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="every folder with its kind, size and last use (what is done without a command)")
    prune = commands.add_parser("prune", help="remove folders; without --yes only say which")
    prune.add_argument("--encoder", action="append", default=[], help="beginning of a digest (rows: bilm.digest)")
    prune.add_argument("--idle-days", type=float, help="only what has not been used for so many days")
    prune.add_argument("--yes", action="store_true", help="remove them")
    check = commands.add_parser("verify", help="read everything through and compare it with its checksums")
    check.add_argument("--remove", action="store_true", help="remove damaged shards, so that they are computed again")
    check.add_argument(
        "--recompute", type=int, metavar="N", help="also compute N sentences (or words) of a folder again"
    )
    check.add_argument("--bilm", help="with which biLM: mini, small, mini_ko, or a folder; or a Hugging Face folder")
    check.add_argument(
        "--text", type=Path, help="tokenised sentences, one a line, of which those that are stored count"
    )
    check.add_argument("--warm-text", type=Path, default=SAMPLE_TEXT / "heldout.txt", help="bilm.warm_text of the runs")
    for each in (parser, *commands.choices.values()):
        default = FOLDER if each is parser else argparse.SUPPRESS
        each.add_argument("--dir", type=Path, default=default, help=f"bilm.store.dir (default: {FOLDER})")
    chosen = parser.parse_args(arguments)
    found = inventory(chosen.dir)
    if chosen.command == "prune":
        _prune(found, tuple(chosen.encoder), chosen.idle_days, chosen.yes)
    elif chosen.command == "verify":
        _check_recompute(chosen)
        _verify(found, chosen.remove)
        if chosen.recompute is not None:
            _recompute(found, chosen)
    else:
        _list(found, chosen.dir)


def _list(found: list[StoredFolder], root: Path) -> None:
    names = ("folder", "encoder", "keep", "state", "dtype", "sentences", "tokens", "size", "last used")
    table = Table(*(Column(name, no_wrap=True) for name in names), box=None, padding=(0, 1, 0, 0))  # fits 80 columns
    for kept in found:
        used = "now" if kept.used else f"{kept.idle_days:.1f} days ago"
        sentences, tokens = (f"{kept.n_keys:,}", f"{kept.n_rows:,}") if kept.keep == "layers" else ("", "")
        words = f"{kept.n_rows:,} words" if kept.keep == "tokens" else tokens
        version = "" if kept.version == VERSION else f" (version {kept.version})"
        digests = (kept.folder.name[:DIGITS] + version, kept.encoder[:DIGITS])
        table.add_row(*digests, kept.keep, kept.state, kept.dtype, sentences, words, format_bytes(kept.n_bytes), used)
    Console().print(table)
    total, free = sum(kept.n_bytes for kept in found), free_bytes(root)
    print(f"{format_bytes(total)} in {root}, {format_bytes(free)} free")


def _prune(found: list[StoredFolder], encoders: tuple[str, ...], idle_days: float | None, yes: bool) -> None:
    if idle_days is not None and not idle_days >= 0:
        raise UserError(f"--idle-days must be a number of at least 0, found {idle_days:g}")
    if "" in encoders:
        raise UserError("--encoder must be the beginning of a digest, found nothing")
    chosen = removable(found, encoders=encoders, idle_days=idle_days)
    for kept in found:
        if kept.used:
            print(f"{kept.folder}: in use, kept")
    for kept in chosen:
        size = format_bytes(kept.n_bytes)
        what = f"{kept.folder}: {kept.keep} of {kept.encoder}, {size}, {kept.idle_days:.1f} days unused"
        if not yes:
            print(f"{what}; would be removed")
        elif remove(kept):
            print(f"{what}; removed")
        else:
            print(f"{kept.folder}: in use, kept")
    if not chosen:
        print("nothing to remove; --encoder DIGEST or --idle-days N choose what goes")
    elif not yes:
        print(f"{format_bytes(sum(kept.n_bytes for kept in chosen))} in all; add --yes to remove them")


def _verify(found: list[StoredFolder], remove_bad: bool) -> None:
    n_bad = 0
    if not found:
        print("nothing is stored here")
    for kept in found:
        if kept.version != VERSION:
            print(f"{kept.folder}: written by version {kept.version} (this is {VERSION}), not read")
            continue
        bad = list(verify(kept))
        n_bad += len(bad)
        for index, reason in bad:
            print(f"{index} {reason}" + ("; removed" if remove_bad else ""))
            if remove_bad:
                index.unlink(missing_ok=True)
                index.with_suffix(".bin").unlink(missing_ok=True)
        print(
            f"{kept.folder}: {kept.n_shards - len(bad)} of {kept.n_shards} shards whole, {format_bytes(kept.n_bytes)}"
        )
    if n_bad and not remove_bad:
        raise UserError(f"{n_bad} damaged; run verify --remove; the next run recomputes what it needs")


def _check_recompute(chosen: argparse.Namespace) -> None:
    n = chosen.recompute
    if (n is None) != (chosen.bilm is None) or (n is not None and n < 1):
        raise UserError("verify --recompute N needs an N of at least 1 and --bilm NAME, the encoder to compute with")


def _recompute(found: list[StoredFolder], chosen: argparse.Namespace) -> None:
    from elmo_tasks.bilm.model import BiLM  # seconds, which the other commands do not need
    from elmo_tasks.data.corpus import read_sentences
    from elmo_tasks.encoders.hf import HuggingFace
    from elmo_tasks.store.recompute import recompute, store_of

    path = Path(chosen.bilm)
    encoder: Encoder = HuggingFace.load(path) if (path / "config.json").is_file() else BiLM.load(chosen.bilm)
    text = [] if chosen.text is None else list(read_sentences(chosen.text))
    n_stores, bad = 0, []
    for kept in found:
        store = store_of(kept, encoder, list(read_sentences(chosen.warm_text))) if kept.version == VERSION else None
        if store is None:
            continue
        n_stores += 1
        result = recompute(store, text, chosen.recompute)
        n_right = result.n - len(result.differing)
        print(f"{kept.folder}: {n_right} of {result.n} recomputed {UNITS[kept.keep]} are right")
        if not result.n:
            print(f"{kept.folder}: an earlier version wrote it and names no sentence; --text FILE can name them")
        for tokens, error in result.differing[:3]:
            print(f"{kept.folder}: {quoted(' '.join(tokens))} is off by up to {error:.3g}")
        bad += [str(kept.folder)] if result.differing else []
    if not n_stores:
        raise UserError(f"--bilm {chosen.bilm}: nothing that can be recomputed here is of this encoder")
    if bad:
        listed = ", ".join(bad)
        raise UserError(f"{listed}: layers that are not those of {chosen.bilm}; remove it: the next run recomputes")


if __name__ == "__main__":
    run_command(main)
