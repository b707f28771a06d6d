"""Output of sections to the terminal, to files and to W&B, and its command-line options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.files import write_bytes, write_text
from elmo_tasks.render.drawing import drawing_files
from elmo_tasks.render.page import page
from elmo_tasks.render.run_table import csv_text
from elmo_tasks.render.sections import ELSEWHERE, Section, draw_all, latex_files, markdown_document, renew
from elmo_tasks.render.terminal import print_grids
from elmo_tasks.render.wandb import log_files
from elmo_tasks.rows.collection import Rows


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that say where sections go; without any of them, the tables are printed."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page: figures, tables, every run")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write every run as a line: scores, configuration")
    parser.add_argument("--latex", type=Path, metavar="FOLDER", help="write the tables as LaTeX")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="write the figures as SVG and PNG")
    parser.add_argument("--wandb", metavar="PROJECT", help="log all of these to W&B as one artifact")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="write Markdown between the document's markers")


def asks_for_files(given: argparse.Namespace) -> bool:
    """Whether any of the options of :func:`add_options` is given."""
    return any((given.html, given.csv, given.latex, given.figures, given.into, given.wandb))


def write(
    sections: Sequence[Section], rows: Rows, given: argparse.Namespace, *, name: str, title: str, block: str
) -> None:
    """Write what is asked for, or print; everything is rendered before anything is written.

    Args:
        sections: what is shown.
        rows: the rows that the sections were made from.
        given: the options of :func:`add_options`.
        name: of the artifact on W&B.
        title: of the page.
        block: names the markers of the document between which the tables are put.
    """
    if not asks_for_files(given):
        show(sections)
    files: dict[Path, bytes] = {}
    if given.html:
        files[given.html] = page(sections, rows, title).encode("utf-8")
    if given.csv:
        files[given.csv] = csv_text(rows).encode("utf-8")
    if given.latex:
        files |= {given.latex / file: content for file, content in latex_files(sections).items()}
    if given.figures:
        drawings = drawing_files(draw_all(sections))
        if not drawings:
            raise UserError(f"--figures: {sections[0].grid.title}: no figure is declared, or there is no row to draw")
        files |= {given.figures / file: content for file, content in drawings.items()}
    if given.into:
        files[given.into] = _renewed(given.into, markdown_document(sections), block).encode("utf-8")
    for path, content in files.items():
        write_bytes(path, content, remedy=ELSEWHERE)
        print(path)
    if given.wandb:
        print(log_files(all_files(sections, rows, title), given.wandb, name=name, n_runs=len(rows.finished)))


def _renewed(path: Path, text: str, block: str) -> str:
    """What :func:`renew` makes of a document.

    Raises:
        UserError: naming the document, if it has no such markers or is not in UTF-8.
    """
    try:
        return renew(path.read_text("utf-8"), text, block)
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text in UTF-8 ({error.reason} at byte {error.start:,})") from error
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def renew_file(path: Path, text: str, block: str) -> None:
    """:func:`renew` a document in place.

    Raises:
        UserError: if the document has no such markers, or cannot be written.
    """
    write_text(path, _renewed(path, text, block), ELSEWHERE)


def show(sections: Sequence[Section]) -> None:
    """Print the tables: aligned in a terminal, as Markdown into a pipe or file."""
    if sys.stdout.isatty():
        print_grids(section.grid for section in sections if section.grid.header)
    else:
        print(markdown_document(sections), flush=True)


def all_files(sections: Sequence[Section], rows: Rows, title: str) -> dict[str, bytes]:
    """Everything: Markdown, LaTeX, figures, page and the runs."""
    whole = {
        "tables.md": f"{markdown_document(sections)}\n",
        "report.html": page(sections, rows, title),
        "runs.csv": csv_text(rows),
    }
    texts = {name: text.encode("utf-8") for name, text in whole.items()}
    return texts | latex_files(sections) | drawing_files(draw_all(sections))
