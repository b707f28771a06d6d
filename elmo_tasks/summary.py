"""The short table at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def print_summary(row: dict[str, Any], path: Path, note: str = "") -> None:
    """Print what a reader of the terminal wants to know of a finished row."""
    table = Table(title=row["run_id"], title_justify="left", show_header=False, min_width=60)
    for cells in _lines(row):
        table.add_row(*cells)
    console = Console()
    console.print(table)
    for kind, each in _files(row, path):
        console.print(f"{kind}: {each}", soft_wrap=True, highlight=False)
    if note:
        console.print(note, soft_wrap=True)


def _lines(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for split, scores in {"dev before": row.get("before"), **row["scores"]}.items():
        if scores is not None:
            yield split, "   ".join(f"{name} {value:.2f}" for name, value in scores.items())
    if "ensemble" in row:
        yield "ensemble of", f"seeds {', '.join(map(str, row['ensemble']['seeds']))}"
    elif "epochs" in row:
        yield "best epoch", f"{row['best_epoch']} of {row['epochs']}"
    if row.get("resumed_after"):
        yield "taken up again", f"after {', '.join(map(str, row['resumed_after']))} updates"
    if row.get("elmo") is not None:
        yield from _elmo(row["elmo"])
    if row["bilm"] is not None:
        layers = row["layers"]
        yield "biLM tokens", f"{layers['computed']:,} computed, {layers['read']:,} read from the store"
    yield "seconds", "   ".join(f"{name} {value:.1f}" for name, value in row["seconds"].items())


def _elmo(elmo: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "ELMo", "none (baseline)" if elmo["placement"] == "none" else f"{elmo['placement']}, {elmo['mix']}"
    for place, weights in elmo["weights"].items():
        s = " ".join(f"{value:.3f}" for value in weights["s"])
        yield f"  {place}", f"s {s}   gamma {weights['gamma']:.3f}"


def _files(row: dict[str, Any], path: Path) -> Iterator[tuple[str, Path]]:
    yield "row", path
    for name in row.get("files", ()):
        yield "file", path.parent / name
    if row.get("exported"):
        yield "biLM", Path(row["exported"]["folder"])
