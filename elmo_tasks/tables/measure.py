"""A declared table with the cells that the rows give."""

from __future__ import annotations

from dataclasses import dataclass

from elmo_tasks.errors import UserError
from elmo_tasks.render.figures import AXES
from elmo_tasks.render.sections import Section
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.fields import Split
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.declare import Gain, Line, Table
from elmo_tasks.tables.find_cell import find_cell
from elmo_tasks.tables.paper import Value, value
from elmo_tasks.tables.settings import Setting, setting
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
    tasks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Selection:
    """What cells are selected from and by: the rows that were read, and the choices of the command line."""

    rows: Rows
    choice: Choice

    def setting(self, overrides: tuple[str, ...]) -> Setting:
        """The setting of a declaration's overrides.

        Raises:
            UserError: for an unknown key or value of the configuration.
        """
        return setting((*self.choice.overrides, *overrides))

    def shown(self, lines: tuple[Line, ...]) -> tuple[Line, ...]:
        """The lines of the chosen tasks."""
        tasks = self.choice.tasks
        return tuple(line for line in lines if not tasks or tasks & {*named_tasks(line.overrides)})

    def find(
        self,
        overrides: tuple[str, ...],
        *,
        split: Split,
        seeds: int,
        ensemble: bool = False,
        paper: Value | None = None,
        bilm: str | None = None,
    ) -> Cell:
        """The cell of a setting; a number of seeds (or members) on the command line replaces the declared one.

        A setting in which nothing is trained, such as the nearest sense means, is deterministic: one seed is all.

        Raises:
            UserError: for an unknown key or value of the configuration, and for an ensemble of one.
        """
        n = self.choice.seeds or seeds
        if ensemble and n < 2:
            raise UserError(f"seeds={n}: an ensemble has two or more members")
        asked = self.setting(overrides)
        chosen = tuple(range(1, n + 1)) if asked.trains else (1,)
        return find_cell(self.rows, asked, split=split, seeds=chosen, ensemble=ensemble, paper=paper, bilm=bilm)


@dataclass(frozen=True)
class EvaluatedTable:
    """What the rows say of a declaration.

    Args:
        cells: every setting that it asks for.
        section: its table and the numbers of its figure.
    """

    cells: list[Cell]
    section: Section


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


def compare_cells(of: Cell, over: Cell, *, other_bilm: bool = False) -> Comparison:
    """The test of one cell's scores against another's; see :func:`incomparable`."""
    why = incomparable(of, over, other_bilm=other_bilm)
    return Comparison(None, why=why) if why else compare(of.values, over.values)


def incomparable(*cells: Cell, other_bilm: bool = False) -> str:
    """Why the rows of some cells must not be compared; empty if they may.

    Args:
        cells: those without rows, and those without a biLM, do not count.
        other_bilm: whether the biLM, or the precision it is read with, is what is compared.
    """
    if not same_data(*cells):
        return "not compared: the rows are of different data files"
    if not _same_word_vectors(*cells):
        return "not compared: the rows are of different word vectors"
    if not other_bilm and len({cell.bilm_digest for cell in cells} - {None}) > 1:
        return "not compared: the rows are of different biLM weights"
    return ""


def same_data(*cells: Cell) -> bool:
    """Whether the rows of some cells, as far as there are any, are all of the same data files."""
    return len({cell.data_digests for cell in cells if cell.rows}) < 2


def _same_word_vectors(*cells: Cell) -> bool:
    """Whether a file of word vectors had the same content in all rows; another ``words.path`` is another setting."""
    found = {(cell.setting.config["words"]["path"], cell.word_vectors) for cell in cells if cell.word_vectors}
    return len(found) == len({path for path, _ in found})


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


def paper_value(section: str, line: Line, key: str) -> Value | None:
    """The paper's value under a section, a line and a key, if all three are named."""
    return value(f"{section}.{line.paper}.{key}") if section and line.paper and key else None


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


def named_tasks(overrides: tuple[str, ...]) -> list[str]:
    """The tasks that overrides name."""
    return [text.removeprefix("task=") for text in overrides if text.startswith("task=")]
