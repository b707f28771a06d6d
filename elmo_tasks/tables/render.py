"""A filled table as a grid of texts."""

from __future__ import annotations

from collections.abc import Iterable

from elmo_tasks.tables.cells import MARKS, Cell
from elmo_tasks.tables.declare import Column, Gain, Line, Quote
from elmo_tasks.tables.grid import Grid
from elmo_tasks.tables.measure import Measured, paper_value
from elmo_tasks.tables.paper import Value
from elmo_tasks.tables.rows import Rows


def grid_of(measured: Measured, rows: Rows) -> Grid:
    """Texts of all cells, with the notes that a reader needs beside them."""
    table = measured.table
    header = ["", *(column.label for column in table.columns)]
    lines = [[line.label, *(_text(measured, line, column) for column in table.columns)] for line in measured.lines]
    notes = [*table.notes, *_splits(measured), *_tests(measured), *_items(measured), *legend(measured.cells.values())]
    if any("?" in text for line in lines for text in line):
        notes.append("?: a value of the paper that no consulted copy showed")
    return Grid(table.title, header, lines, [*notes, *rows.notes()])


def _text(measured: Measured, line: Line, column: Column | Gain | Quote) -> str:
    if isinstance(column, Column):
        return cell_text(measured.cells[line.label, column.label])
    if isinstance(column, Quote):
        found = paper_value(measured.table, line, column.paper)
        return "-" if found is None else f"paper {found}" + (f", {found.system}" if found.system else "")
    gain = measured.gain(line, column)
    unit = " %" if column.relative else ""
    ours = "missing" if gain is None else f"{gain:+.1f}{unit}" if column.relative else f"{gain:+.2f}"
    return ours + _beside(gain, paper_value(measured.table, line, column.paper), unit)


def cell_text(cell: Cell) -> str:
    """``66.64 ± 0.91 (3) [ab]; paper 89.5 (-22.86)``: mean, deviation, seeds, marks, the paper, the difference."""
    if cell.mean is None:
        return "missing" + ("" if "f" not in cell.marks else " [f]") + _beside(None, cell.paper)
    spread = "" if cell.sd is None else f" ± {cell.sd:.2f}"
    n = f"{len(cell.seeds)} members" if cell.ensemble else f"{cell.n}"
    marks = f" [{''.join(cell.marks)}]" if cell.marks else ""
    return f"{cell.mean:.2f}{spread} ({n}){marks}{_beside(cell.mean, cell.paper)}"


def _beside(ours: float | None, paper: Value | None, unit: str = "") -> str:
    if paper is None:
        return ""
    return f"; paper {paper}{unit}" + ("" if ours is None else f" ({ours - paper.v:+.2f})")


def _splits(measured: Measured) -> list[str]:
    others = [line for line in measured.lines if line.split not in (None, measured.table.split)]
    texts = [f"{line.label}: {line.split}, since there is no public {measured.table.split} set" for line in others]
    return [f"scores on {measured.table.split}, mean ± standard deviation (seeds)", *texts]


def _tests(measured: Measured) -> list[str]:
    """A sentence for each difference that the table claims."""
    pairs = [(gain.of, gain.over) for gain in measured.table.gains()] + list(measured.table.compare)
    found = [
        f"{line.label}, {of} against {over}: {comparison}"
        for line in measured.lines
        for of, over in dict.fromkeys(pairs)
        if (comparison := measured.comparison(line, of, over)).why != "missing"
    ]
    return found


def _items(measured: Measured) -> list[str]:
    """How many training items the rows of each line have seen."""
    notes = []
    for line in measured.lines:
        cells = [cell for (label, _), cell in measured.cells.items() if label == line.label]
        numbers = sorted({row["data"]["train"]["used"] for cell in cells for row in cell.rows.values()})
        if numbers:
            notes.append(f"{line.label}: {', '.join(f'{n:,}' for n in numbers)} training items")
    return notes


def legend(cells: Iterable[Cell]) -> list[str]:
    """What the marks mean that occur in some cells."""
    used = {mark for cell in cells for mark in cell.marks}
    return [f"{mark}: {text}" for mark, text in MARKS.items() if mark in used]
