"""A table in a terminal: aligned columns, nothing cut within a word."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from rich.text import Text

from elmo_tasks.render.grid import Grid, numeric, one_line

_GAP = 2  # columns of the terminal between two of the table


def print_grids(grids: Iterable[Grid], console: Console | None = None) -> None:
    """Print tables with their titles and notes.

    Cells are broken between words, and between a mean and its deviation where the terminal is too narrow otherwise. A
    table whose longest words do not fit side by side is printed wider than the terminal.
    """
    console = console or Console(highlight=False)
    for grid in grids:
        console.print(Text(grid.title, style="bold"), soft_wrap=True)
        if grid.header:
            shown = _mapped(grid, one_line)
            unbroken = _mapped(shown, lambda text: text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"))
            shown = unbroken if _least_width(unbroken) <= console.width else shown
            console.print(_table(shown), width=max(console.width, _least_width(shown)), soft_wrap=True)
        for note in grid.notes:
            console.print(Text(f"- {one_line(note)}", style="dim"), soft_wrap=True)
        console.print()


def _mapped(grid: Grid, change: Callable[[str], str]) -> Grid:
    return replace(grid, header=[*map(change, grid.header)], lines=[[*map(change, line)] for line in grid.lines])


def _table(grid: Grid) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
    for name, right, least in zip(grid.header, numeric(grid), _longest_words(grid), strict=True):
        table.add_column(Text(name), justify="right" if right else "left", min_width=least)
    for line in grid.lines:
        table.add_row(*map(Text, line))
    return table


def _longest_words(grid: Grid) -> list[int]:
    columns = zip(grid.header, *grid.lines, strict=True)
    return [max(len(word) for cell in column for word in cell.split(" ")) for column in columns]


def _least_width(grid: Grid) -> int:
    return sum(width + _GAP for width in _longest_words(grid))
