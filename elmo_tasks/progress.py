"""Progress of long work: one live line in a terminal, elsewhere a plain line on standard error at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn


class Counter(Protocol):
    """Counts what has been done."""

    def update(self, n: int) -> None:
        """Add ``n`` to the count."""


def live(*columns: ProgressColumn) -> Progress:
    """A line on standard error that is redrawn and disappears when the work is done; for terminals only."""
    return Progress(*columns, console=_console(), transient=True, redirect_stdout=False)


def in_terminal() -> bool:
    """Whether standard error is a terminal."""
    return _console().is_terminal


def say(line: str) -> None:
    """A line on standard error, above a live one."""
    _console().print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def counting(what: str, total: int | None, unit: str = "tokens", wanted: bool = True) -> Iterator[Counter]:
    """Show how far a piece of work has come.

    Args:
        what: the work, ``biLM layers``.
        total: how many units there are; None if that is not known.
        unit: of what is counted.
        wanted: False shows nothing.
    """
    counter = _Counter(what, total, unit, wanted)
    counter.start()
    try:
        yield counter
    finally:
        counter.stop()


class _Counter:
    def __init__(self, what: str, total: int | None, unit: str, wanted: bool) -> None:
        self.what, self.unit, self.wanted, self.n = what, unit, wanted, 0
        counts = TextColumn("{task.completed:,.0f}" + ("" if total is None else " of {task.total:,.0f}") + f" {unit}")
        self._live = live(TextColumn("{task.description}"), BarColumn(), counts, TimeRemainingColumn())
        self._shown = wanted and in_terminal()
        self._task = self._live.add_task(what, total=total)

    def start(self) -> None:
        self._begin = time.monotonic()
        if self._shown:
            self._live.start()

    def update(self, n: int) -> None:
        self.n += n
        if self._shown:
            self._live.advance(self._task, n)

    def stop(self) -> None:
        if self._shown:
            self._live.stop()
        elif self.wanted:
            say(f"{self.what}: {self.n:,} {self.unit} in {time.monotonic() - self._begin:.1f} s")


def _console() -> Console:
    return Console(stderr=True)
