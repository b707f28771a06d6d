"""The tables as one Markdown text, and a document's block that holds them."""

from __future__ import annotations

from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.report.grid import Grid, markdown
from elmo_tasks.report.rows import Rows, read
from elmo_tasks.report.tables import layers_table, mix_table, perplexity_table, results_table


def all_tables(rows: Rows) -> list[Grid]:
    """The tables of a folder of rows."""
    perplexities = perplexity_table(rows.finished)
    tables = [results_table(rows.finished), mix_table(rows.finished), layers_table(rows.finished)]
    return [*tables, perplexities] if perplexities.lines else tables


def text(rows: Rows) -> str:
    """All tables as Markdown, and how many files were left out."""
    first, *others = all_tables(rows)
    parts = [markdown(first), *(f"{grid.title}:\n\n{markdown(grid)}" for grid in others)]
    return "\n\n".join([*parts, rows.note] if rows.note else parts)


def render(folder: Path) -> str:
    """All tables of a folder of rows as Markdown."""
    return text(read(folder))


def renew(document: str, tables: str, block: str = "results") -> str:
    """Put ``tables`` between the markers ``<!-- BLOCK: begin -->`` and ``end`` of a Markdown document.

    Raises:
        UserError: if the markers are not there.
    """
    marks = f"<!-- {block}: begin -->", f"<!-- {block}: end -->"
    head, begin, rest = document.partition(marks[0])
    _, end, tail = rest.partition(marks[1])
    if not begin or not end:
        raise UserError(f"the document has no {' ... '.join(marks)} to put the tables in")
    return f"{head}{begin}\n\n{tables}\n\n{end}{tail}"
