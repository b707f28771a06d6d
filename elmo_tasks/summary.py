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
    for split, scores in {"dev before": row.get("before"), **row["scores"]}.items():
        if scores is not None:
            table.add_row(split, "   ".join(f"{name} {value:.2f}" for name, value in scores.items()))
    if "ensemble" in row:
        table.add_row("ensemble of", f"seeds {', '.join(map(str, row['ensemble']['seeds']))}")
    else:
        table.add_row("best epoch", f"{row['best_epoch']} of {row['epochs']}")
    if row.get("resumed_after"):
        table.add_row("taken up again", f"after {', '.join(map(str, row['resumed_after']))} updates")
    elmo = row.get("elmo")
    if elmo is not None:
        table.add_row(
            "ELMo", "none (baseline)" if elmo["placement"] == "none" else f"{elmo['placement']}, {elmo['mix']}"
        )
        for place, weights in elmo["weights"].items():
            s = " ".join(f"{value:.3f}" for value in weights["s"])
            table.add_row(f"  {place}", f"s {s}   gamma {weights['gamma']:.3f}")
    if row["bilm"] is not None:
        layers = row["layers"]
        table.add_row("biLM tokens", f"{layers['computed']:,} computed, {layers['read']:,} read from the store")
    seconds = row["seconds"]
    table.add_row("seconds", "   ".join(f"{name} {value:.1f}" for name, value in seconds.items()))
    console = Console()
    console.print(table)
    for kind, each in _files(row, path):
        console.print(f"{kind}: {each}", soft_wrap=True, highlight=False)
    if note:
        console.print(note, soft_wrap=True)


def _files(row: dict[str, Any], path: Path) -> Iterator[tuple[str, Path]]:
    yield "row", path
    for name in row.get("files", ()):
        yield "file", path.parent / name
    if row.get("exported"):
        yield "biLM", Path(row["exported"]["folder"])
