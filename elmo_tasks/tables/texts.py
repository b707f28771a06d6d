"""An evaluated table as texts: cells, marks and notes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from elmo_tasks.render.grid import Grid
from elmo_tasks.rows.grouping import mean_text
from elmo_tasks.tables.cells import MARKS, RISING, Cell
from elmo_tasks.tables.declare import Column, Declared, Gain, Line, Quote
from elmo_tasks.tables.declare_claims import Claims
from elmo_tasks.tables.measure import Choice, MeasuredTable, Selection, paper_value
from elmo_tasks.tables.paper import Value, find_value
from elmo_tasks.tables.significance import Comparison, corrected


def make_table(measured: MeasuredTable, selection: Selection) -> Grid:
    """Texts of all cells, with the notes that a reader needs beside them."""
    table = measured.table
    header = ["", *(column.label for column in table.columns)]
    lines = [[line.label, *(_text(measured, line, column) for column in table.columns)] for line in measured.lines]
    last = [*_tests(measured), *_items(measured), *_other_data(measured)]
    return make_grid(selection, table, measured.cells.values(), header, lines, first=_splits(measured), last=last)


def make_grid(
    selection: Selection,
    declared: Declared | Claims,
    cells: Iterable[Cell],
    header: list[str],
    lines: list[list[str]],
    *,
    first: Sequence[str] = (),
    last: Sequence[str] = (),
) -> Grid:
    """A table with the notes that every table has: its settings, its own notes, the meaning of marks, its rows.

    Args:
        selection: the rows, and the choices of the command line.
        declared: whose title and notes it has.
        cells: all that the table shows.
        header: one text a column.
        lines: cells as texts.
        first: notes before those of the declaration.
        last: notes after those of the declaration.
    """
    cells = list(cells)
    notes = [
        _name_settings(cells),
        *_name_choice(selection.choice),
        *first,
        *declared.notes,
        *last,
        *_explain_marks(cells),
    ]
    if any("?" in text for line in lines for text in line):
        notes.append("?: a value of the paper that no consulted copy showed")
    return Grid(declared.title, header, lines, [*notes, *selection.rows.notes()])


def _name_settings(cells: Iterable[Cell]) -> str:
    """What the cells have in common, in the words of the command line."""
    configs = [cell.setting.config for cell in cells]
    names = {part: sorted({config[part]["name"] for config in configs}) for part in ("data", "scale", "bilm")}
    return ", ".join(f"{part}={'|'.join(values)}" for part, values in names.items())


def _name_choice(choice: Choice) -> list[str]:
    """What else the command line set for all cells, except for the folder of the data."""
    named = ("data=", "scale=", "bilm=", "data.root=")  # the first three are in the note on settings
    others = [text for text in choice.overrides if not text.startswith(named)]
    return [f"set for all cells: {', '.join(others)}"] if others else []


def _explain_marks(cells: Iterable[Cell]) -> list[str]:
    """The meaning of each mark that occurs in the cells."""
    used = {mark for cell in cells for mark in cell.marks}
    rising = [_RISING] if any(cell.rising for cell in cells) else []
    return rising + [f"{mark}: {text}" for mark, text in MARKS.items() if mark in used]


_RISING = (
    f"{RISING}: more than one run of five was best in the last fifth of its budget, or ended at its limit, so "
    "longer training might raise the score"
)


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


def cell_text(cell: Cell) -> str:
    """``66.64 ± 0.91 (3), still rising [ab]; paper 89.5 (-22.86)``: mean, deviation, seeds, marks, and the paper's."""
    if cell.mean is None:
        return missing_text(cell) + paper_text(None, cell.paper)
    n = f"{len(cell.seeds)} members" if cell.ensemble else f"{cell.n}"
    return f"{mean_text([*cell.values.values()])} ({n}){marks_text(cell)}{paper_text(cell.mean, cell.paper)}"


def missing_text(cell: Cell) -> str:
    """Of a cell without a row: whether there are rows that do not count."""
    return "missing" + ("" if "f" not in cell.marks else " [f]")


def marks_text(*cells: Cell) -> str:
    """Remarks on several cells together: ``, still rising [ab]``; empty if there are none."""
    marks = "".join(sorted({mark for cell in cells for mark in cell.marks}))
    return (f", {RISING}" if any(cell.rising for cell in cells) else "") + (f" [{marks}]" if marks else "")


def paper_text(ours: float | None, paper: Value | None, unit: str = "") -> str:
    """The paper's value and how far ours is from it, to follow ours; nothing where the paper has none."""
    if paper is None:
        return ""
    return f"; paper {paper}{unit}" + ("" if ours is None else f" ({ours - paper.v:+.2f})")


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


def comparison_notes(named: Mapping[str, Comparison]) -> list[str]:
    """A sentence for each comparison whose runs are there, and one on how the p values are corrected.

    Args:
        named: all comparisons of the table, also those whose runs are missing.
    """
    found = dict(zip(named, corrected([*named.values()]), strict=True))
    texts = [f"{name}: {comparison}" for name, comparison in found.items() if comparison.why != "missing"]
    tested = any(comparison.p is not None for comparison in found.values())
    return [*texts, holm_note(found.values())] if tested else texts


def holm_note(comparisons: Collection[Comparison]) -> str:
    """How the p values are corrected for their number."""
    return f"Holm: p corrected for the number of comparisons in this table ({len(comparisons)}), run or not yet"


def _items(measured: MeasuredTable) -> list[str]:
    """What the rows of each line have seen: training items (and how many the paper had, where known), commits."""
    notes = []
    for line in measured.lines:
        cells = [cell for (label, _), cell in measured.cells.items() if label == line.label]
        rows = [row for cell in cells for row in cell.rows.values()]
        used = sorted({row.data.items["train"].used for row in rows if "train" in row.data.items})
        if used:
            paper = find_value(f"training_items.{cells[0].setting.config['task']['name']}")
            papers = "" if paper is None else f" (the paper {paper.v:,.0f})"
            commits = ", ".join(sorted({str(row.commit)[:7] for row in rows}))
            notes.append(f"{line.label}: {', '.join(f'{n:,}' for n in used)} training items{papers}; commits {commits}")
    return notes


def _other_data(measured: MeasuredTable) -> list[str]:
    """A sentence for each task whose rows are of different files of train and dev, in whatever cells of the table."""
    digests: dict[str, set[str]] = {}
    for cell in measured.cells.values():
        if cell.data_digests is not None:
            digests.setdefault(cell.setting.config["task"]["name"], set()).add(cell.data_digests[0])
    return [
        f"task={task}: not all rows are of the same data files, so that cells differ in more than their settings"
        for task, found in digests.items()
        if len(found) > 1
    ]
