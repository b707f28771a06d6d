"""What all evaluated declarations share: their form, and cells, marks and notes as texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from elmo_tasks.render.grid import Grid
from elmo_tasks.render.sections import Section
from elmo_tasks.rows.settings import mean_text
from elmo_tasks.tables.collect import MARKS, RISING, Cell, Choice, Selection
from elmo_tasks.tables.compare import Comparison, corrected
from elmo_tasks.tables.declare import Claims, Declared
from elmo_tasks.tables.paper import Value


@dataclass(frozen=True)
class EvaluatedTable:
    """What the rows say of a declaration.

    Args:
        cells: every setting that it asks for.
        section: its table and the numbers of its figure.
    """

    cells: list[Cell]
    section: Section


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
    configs = [cell.wanted.config for cell in cells]
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
    rising = [_RISING] if any(cell.setting.rising for cell in cells) else []
    return rising + [f"{mark}: {text}" for mark, text in MARKS.items() if mark in used]


_RISING = (
    f"{RISING}: more than one run of five was best in the last fifth of its budget, or ended at its limit, so "
    "longer training might raise the score"
)


def cell_text(cell: Cell) -> str:
    """``66.64 ± 0.91 (3), still rising [ab]; paper 89.5 (-22.86)``: mean, deviation, seeds, marks, and the paper's."""
    if cell.mean is None:
        return missing_text(cell) + paper_text(None, cell.paper)
    n = f"{len(cell.seeds)} members" if cell.ensemble else f"{len(cell.rows)}"
    return f"{mean_text(cell.values.values())} ({n}){marks_text(cell)}{paper_text(cell.mean, cell.paper)}"


def missing_text(cell: Cell) -> str:
    """Of a cell without a row: whether there are rows that do not count."""
    return "missing" + ("" if "f" not in cell.marks else " [f]")


def marks_text(*cells: Cell) -> str:
    """Remarks on several cells together: ``, still rising [ab]``; empty if there are none."""
    marks = "".join(sorted({mark for cell in cells for mark in cell.marks}))
    return (f", {RISING}" if any(cell.setting.rising for cell in cells) else "") + (f" [{marks}]" if marks else "")


def paper_text(ours: float | None, paper: Value | None, unit: str = "") -> str:
    """The paper's value and how far ours is from it, to follow ours; nothing where the paper has none."""
    if paper is None:
        return ""
    return f"; paper {paper}{unit}" + ("" if ours is None else f" ({ours - paper.v:+.2f})")


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
