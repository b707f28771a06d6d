"""A plan in the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from elmo_tasks.formatting import format_bytes
from elmo_tasks.planning.layers import Layers
from elmo_tasks.planning.plan import Plan, total

_shown: dict[str, Plan] = {}
"""The plans of this process: those of a sweep."""


def total_seconds() -> float:
    """Seconds of all runs that were shown, one after the other; layers that several need are computed once."""
    return total(_shown)


def show(plan: Plan) -> None:
    """Print what a run will take, and what all of a sweep have added up to."""
    _shown[plan.run_id] = plan
    table = Table(title=f"plan of {plan.run_id}", title_justify="left", show_header=False, min_width=60)
    for name, value in _lines(plan):
        table.add_row(name, value)
    Console().print(table)
    if len(_shown) > 1:
        print(f"{len(_shown)} runs so far, one after the other: {duration(total_seconds())}")


def _lines(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.done.scored:
        yield "status", "finished: nothing will be computed (force=true runs it again)"
    elif plan.done.trained:
        yield "status", "trained: its weights will be scored on the test set"
    elif plan.done.updates:
        yield "status", f"resumes after {plan.done.updates:,} updates"
    yield "items", "   ".join(f"{split} {n:,}" for split, n in plan.items.items())
    yield "parameters", f"{plan.parameters:,}"
    if plan.layers is not None:
        yield from _layers(plan.layers)
    if plan.step is not None:
        step = plan.step
        pages = "" if plan.layers is None else ", besides pages of the store, which the system can drop"
        yield "memory", f"{format_bytes(plan.peak_bytes)} at the peak{pages}"
        yield (
            "an epoch",
            f"{step.n_batches:,} updates, {duration(step.epoch_seconds)}; dev {duration(step.dev_seconds)}",
        )
        left = f"{plan.updates_left:,} of " if plan.done.updates else ""
        in_all = f"{plan.updates:,} updates in {plan.epochs} epochs at most"
        yield "training", f"{left}{in_all}, {duration(plan.fit_seconds)}"
        yield "in all", duration(plan.seconds)


def _layers(layers: Layers) -> Iterator[tuple[str, str]]:
    yield "text", f"{layers.n_tokens:,} tokens in distinct sentences, {layers.n_words:,} distinct words"
    yield "store", ", ".join(f"{format_bytes(n)} with keep={keep}" for keep, n in layers.bytes_kept.items())
    unit = "tokens" if layers.keep == "layers" else "words"
    if layers.n_missing:
        yield "to compute", f"{layers.n_missing:,} {unit}, {duration(layers.seconds)}"
        yield "disk", f"{format_bytes(layers.bytes_missing)} needed, {format_bytes(layers.bytes_free)} free"
    else:
        yield "to compute", f"nothing: all {unit} are in the store"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever says most."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
