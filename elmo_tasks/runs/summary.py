"""The short table at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from elmo_tasks.rows.parts import ElmoRecord, TrainingRecord
from elmo_tasks.rows.schema import LanguageModelRow, Row


def print_summary(row: Row, path: Path, note: str = "") -> None:
    """Print the main content of a finished row."""
    table = Table(show_header=False, min_width=60)
    for cells in _lines(row):
        table.add_row(*map(Text, cells))  # no markup: brackets are brackets
    console = Console()
    console.print(Text(row.run_id, style="italic"), soft_wrap=True)
    console.print(table)
    for kind, each in _files(row, path):
        console.print(Text(f"{kind}: {each}"), soft_wrap=True)
    if note:
        console.print(note, soft_wrap=True)


def _lines(row: Row) -> Iterator[tuple[str, str]]:
    about = row.language_model if isinstance(row, LanguageModelRow) else None
    before = None if about is None else about.before
    for split, scores in [("dev before", before), *row.scores.items()]:
        if scores is not None:
            yield split, "   ".join(f"{name} {value:.2f}" for name, value in scores.items())
    if row.data.items:
        yield "items", "   ".join(f"{split} {items.used:,}" for split, items in row.data.items.items())
    if row.members:
        yield "ensemble of", f"seeds {', '.join(str(member.seed) for member in row.members)}"
    if row.training is not None:
        yield from _training(row, row.training)
    if about is not None:
        yield "vocabulary", f"{about.vocabulary:,} words; {about.unknown:.1%} of the training text is outside (<UNK>)"
    if row.elmo is not None:
        yield from _elmo(row.elmo)
    for reason, n in row.data.left_out.items():
        yield "while reading", f"{reason}: {n:,}"
    if row.bilm is not None:
        yield "biLM tokens", f"{row.layers.computed:,} computed, {row.layers.read:,} read from the store"
    seconds = {name: value for name, value in vars(row.seconds).items() if isinstance(value, float)}
    yield "seconds", "   ".join(f"{name} {value:.1f}" for name, value in seconds.items())


def _training(row: Row, training: TrainingRecord) -> Iterator[tuple[str, str]]:
    note = "" if row.converged or row.kind == "language_model" else ", not converged"
    if training.best_epoch == 0:
        note = ", the score before training" if row.kind != "language_model" else ", the initial weights are kept"
    yield "best epoch", f"{training.best_epoch} of {training.epochs}{note}"
    if training.resumed_after:
        yield "resumed", f"after {', '.join(map(str, training.resumed_after))} updates"


def _elmo(elmo: ElmoRecord) -> Iterator[tuple[str, str]]:
    yield "ELMo", "none (baseline)" if elmo.placement == "none" else f"{elmo.placement}, {elmo.mix}"
    for place, mix in elmo.weights.items():
        s = " ".join(f"{value:.3f}" for value in mix.s)
        yield f"  {place}", f"s {s}   gamma {mix.gamma:.3f}"


def _files(row: Row, path: Path) -> Iterator[tuple[str, Path]]:
    yield "row", path
    for name in row.files:
        yield "file", path.parent / name
    if isinstance(row, LanguageModelRow):
        yield "biLM", Path(row.language_model.exported.folder)
