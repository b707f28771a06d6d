"""A declared table, filled with what the rows say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from elmo_tasks.errors import UserError
from elmo_tasks.tables.cells import Cell, find_cell
from elmo_tasks.tables.declare import Column, Gain, Line, Table
from elmo_tasks.tables.paper import Value, value
from elmo_tasks.tables.rows import Rows
from elmo_tasks.tables.settings import setting
from elmo_tasks.tables.significance import Comparison, compare


@dataclass(frozen=True)
class Choice:
    """What the command line says of all cells.

    Args:
        overrides: of the configuration, before those of the declaration, which win.
        seeds: how many, where it is not the declaration's number.
        tasks: the lines that are shown; empty for all.
    """

    overrides: tuple[str, ...] = ()
    seeds: int | None = None
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """A table and its cells.

    Args:
        table: the declaration.
        lines: of the table, or those that were chosen.
        cells: of the columns of scores, by the labels of line and column.
    """

    table: Table
    lines: tuple[Line, ...]
    cells: dict[tuple[str, str], Cell]

    def gain(self, line: Line, gain: Gain) -> float | None:
        """Points, or percent of the error, between two cells; None if one is missing or of other data."""
        of, over = self.cells[line.label, gain.of], self.cells[line.label, gain.over]
        if of.mean is None or over.mean is None or of.data_digest != over.data_digest:
            return None
        points = of.mean - over.mean
        return 100 * points / (100 - over.mean) if gain.relative else points

    def comparison(self, line: Line, of: str, over: str) -> Comparison:
        """The test of one cell's scores against another's."""
        return compare_cells(self.cells[line.label, of], self.cells[line.label, over])


def compare_cells(of: Cell, over: Cell) -> Comparison:
    """The test of one cell's scores against another's; cells of other data are not compared."""
    if of.rows and over.rows and of.data_digest != over.data_digest:
        return Comparison(None, why="not compared: their rows are of different data files")
    return compare(of.values, over.values)


def measure(table: Table, rows: Rows, choice: Choice) -> Measured:
    """Find the cells of a table.

    Raises:
        UserError: if the declaration names a column, a key of the configuration or a value of the paper that is not
            there.
    """
    _check(table)
    lines = tuple(line for line in table.lines if not choice.tasks or _task(line) in choice.tasks)
    cells = {
        (line.label, column.label): _cell(table, line, column, rows, choice)
        for line in lines
        for column in table.scores()
    }
    return Measured(table, lines, cells)


def paper_value(table: Table, line: Line, key: str) -> Value | None:
    """The paper's value of a line and column, if it has one."""
    return value(f"{table.paper}.{line.paper}.{key}") if table.paper and line.paper and key else None


def _cell(table: Table, line: Line, column: Column, rows: Rows, choice: Choice) -> Cell:
    n = line.members if column.ensemble else choice.seeds or table.seeds
    return find_cell(
        rows,
        setting((*choice.overrides, *line.overrides, *column.overrides)),
        split=line.split or table.split,
        seeds=tuple(range(1, n + 1)),
        ensemble=column.ensemble,
        paper=paper_value(table, line, column.paper),
    )


def _check(table: Table) -> None:
    for what, labels in (("line", [x.label for x in table.lines]), ("column", [x.label for x in table.columns])):
        if len(set(labels)) < len(labels):
            raise UserError(f"{table.title}: two {what}s have one label: {', '.join(labels)}")
    labels = [column.label for column in table.scores()]
    for pair in [*table.compare, *((gain.of, gain.over) for gain in table.gains())]:
        for label in pair:
            if label not in labels:
                raise UserError(f"{table.title}: no column {label!r} of scores; there are {', '.join(labels)}")


def _task(line: Line) -> str:
    tasks: Sequence[str] = [text.removeprefix("task=") for text in line.overrides if text.startswith("task=")]
    return tasks[-1] if tasks else ""
