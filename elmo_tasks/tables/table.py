"""A declared table: lines by columns of scores, with their curves or chart if there are any."""

from __future__ import annotations

from dataclasses import dataclass

from elmo_tasks.errors import UserError
from elmo_tasks.render.figures import AXES
from elmo_tasks.render.grid import Grid
from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import Pair, Panel, Point, gap, point
from elmo_tasks.tables.collect import Cell, Selection, paper_value
from elmo_tasks.tables.compare import Comparison, compare_cells
from elmo_tasks.tables.curves import make_curves, make_panel
from elmo_tasks.tables.declare import Column, Gain, Line, Quote, Table
from elmo_tasks.tables.paper import find_value
from elmo_tasks.tables.texts import EvaluatedTable, cell_text, comparison_notes, make_grid, paper_text


@dataclass(frozen=True)
class MeasuredTable:
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
        """Points, or percent of the error, between two cells, on the seeds that :meth:`comparison` takes.

        None if a cell is missing or not to be compared, or if there is no error that could be reduced.
        """
        found = self.comparison(line, gain.of, gain.over)
        if found.difference is None or found.base is None or (gain.relative and found.base == 100):
            return None
        return 100 * found.difference / (100 - found.base) if gain.relative else found.difference

    def comparison(self, line: Line, of: str, over: str) -> Comparison:
        """The test of one cell's scores against another's."""
        cells = self.cells[line.label, of], self.cells[line.label, over]
        return compare_cells(*cells, other_bilm=self.table.other_bilm)


def evaluate_table(table: Table, selection: Selection) -> EvaluatedTable:
    """Lines by columns of scores, with their curves or chart if there are any."""
    measured = measure(table, selection)
    panels = make_panels(measured)
    pairs = make_pairs(measured) if table.chart else []
    section = Section(make_table(measured, selection), tuple(panels), table.axis, pairs=tuple(pairs))
    return EvaluatedTable([*measured.cells.values()], section)


def measure(table: Table, selection: Selection) -> MeasuredTable:
    """Find the cells of a table.

    Raises:
        UserError: if the declaration names a column, a key of the configuration or a value of the paper that is not
            there.
    """
    _check(table)
    lines = selection.shown(table.lines)
    cells = {
        (line.label, column.label): selection.find(
            (*line.overrides, *column.overrides),
            split=line.split or table.split,
            seeds=line.members if column.ensemble else table.seeds,
            ensemble=column.ensemble,
            paper=paper_value(table.paper, line, column.paper),
        )
        for line in lines
        for column in table.scores()
    }
    return MeasuredTable(table, lines, cells)


def make_table(measured: MeasuredTable, selection: Selection) -> Grid:
    """Texts of all cells, with the notes that a reader needs beside them."""
    table = measured.table
    header = ["", *(column.label for column in table.columns)]
    lines = [[line.label, *(_text(measured, line, column) for column in table.columns)] for line in measured.lines]
    last = [*_tests(measured), *_items(measured), *_other_data(measured)]
    return make_grid(selection, table, measured.cells.values(), header, lines, first=_splits(measured), last=last)


def _text(measured: MeasuredTable, line: Line, column: Column | Gain | Quote) -> str:
    if isinstance(column, Column):
        return cell_text(measured.cells[line.label, column.label])
    if isinstance(column, Quote):
        found = paper_value(measured.table.paper, line, column.paper)
        return "-" if found is None else f"paper {found}" + (f", {found.system}" if found.system else "")
    gain = measured.gain(line, column)
    unit = " %" if column.relative else ""
    ours = "missing" if gain is None else f"{gain:+.1f}{unit}" if column.relative else f"{gain:+.2f}"
    ours += measured.comparison(line, column.of, column.over).seeds
    return ours + paper_text(gain, paper_value(measured.table.paper, line, column.paper), unit)


def _splits(measured: MeasuredTable) -> list[str]:
    others = [line for line in measured.lines if line.split not in (None, measured.table.split)]
    texts = [f"{line.label}: {line.split} scores" for line in others]
    return [f"{measured.table.split} scores, mean ± standard deviation over seeds (how many)", *texts]


def _tests(measured: MeasuredTable) -> list[str]:
    """A sentence for each difference that the table claims, and one on how they are tested."""
    pairs = dict.fromkeys([(gain.of, gain.over) for gain in measured.table.gains()] + list(measured.table.compare))
    return comparison_notes(
        {
            f"{line.label}, {of} against {over}": measured.comparison(line, of, over)
            for line in measured.lines
            for of, over in pairs
        }
    )


def _items(measured: MeasuredTable) -> list[str]:
    """What the rows of each line have seen: training items (and how many the paper had, where known), commits."""
    notes = []
    for line in measured.lines:
        cells = [cell for (label, _), cell in measured.cells.items() if label == line.label]
        rows = [row for cell in cells for row in cell.rows.values()]
        used = sorted({row.data.items["train"].used for row in rows if "train" in row.data.items})
        if used:
            paper = find_value(f"training_items.{cells[0].wanted.task}")
            papers = "" if paper is None else f" (the paper {paper.v:,.0f})"
            commits = ", ".join(sorted({str(row.commit)[:7] for row in rows}))
            notes.append(f"{line.label}: {', '.join(f'{n:,}' for n in used)} training items{papers}; commits {commits}")
    return notes


def _other_data(measured: MeasuredTable) -> list[str]:
    """A sentence for each task whose rows are of different files of train and dev, in whatever cells of the table."""
    digests: dict[str, set[str]] = {}
    for cell in measured.cells.values():
        for row in cell.setting.rows:
            digests.setdefault(cell.wanted.task, set()).add(row.data.digest)
    return [
        f"task={task}: not all rows are of the same data files, so that cells differ in more than their settings"
        for task, found in digests.items()
        if len(found) > 1
    ]


def make_panels(measured: MeasuredTable) -> list[Panel]:
    """A panel for each group of lines with a place on the axis, in it a curve for each column of scores."""
    panels = []
    for group in dict.fromkeys(line.curve for line in measured.lines if line.x is not None):
        curves = []
        for column in measured.table.scores():
            cells = {
                line.x: measured.cells[line.label, column.label]
                for line in measured.lines
                if line.curve == group and line.x is not None
            }
            with_rows = [cell for cell in cells.values() if cell.rows]
            curves += make_curves(column.label, with_rows, _along(cells))
        panels += make_panel(group, curves)
    return panels


def make_pairs(measured: MeasuredTable) -> list[Pair]:
    """Both ends of the first gain of each line whose two cells may be compared."""
    (gain, *_) = measured.table.gains()
    pairs = []
    for line in measured.lines:
        over, of = measured.cells[line.label, gain.over], measured.cells[line.label, gain.of]
        points = measured.comparison(line, gain.of, gain.over).difference
        if measured.gain(line, gain) is not None and points is not None:
            ends = point(0, over.values.values()), point(0, of.values.values())
            pairs.append(Pair(line.label, *ends, points, over.setting.rising or of.setting.rising))
    return pairs


def _along(cells: dict[float, Cell]) -> list[Point]:
    """Points from the first cell with rows to the last one, with a gap at each between them that has none."""
    found = [x for x, cell in cells.items() if cell.rows]
    if not found:
        return []
    between = [x for x in sorted(cells) if min(found) <= x <= max(found)]
    return [point(x, cells[x].values.values()) if cells[x].rows else gap(x) for x in between]


def _check(table: Table) -> None:
    for what, labels in (("line", [x.label for x in table.lines]), ("column", [x.label for x in table.columns])):
        if len(set(labels)) < len(labels):
            raise UserError(f"{table.title}: two {what}s have one label: {', '.join(labels)}")
    if any(line.x is not None for line in table.lines) and table.axis not in AXES:
        raise UserError(f"{table.title}: its lines have an x, and axis={table.axis!r} is not one of {', '.join(AXES)}")
    labels = [column.label for column in table.scores()]
    for pair in [*table.compare, *((gain.of, gain.over) for gain in table.gains())]:
        for label in pair:
            if label not in labels:
                raise UserError(
                    f"{table.title}: unknown column {label!r} of scores; expected one of {', '.join(labels)}"
                )
