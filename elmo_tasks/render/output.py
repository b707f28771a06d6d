"""Where sections go: to the terminal, to files, to W&B. Options that every command of tables has."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.files import write_bytes
from elmo_tasks.render.drawing import drawing_files
from elmo_tasks.render.page import page
from elmo_tasks.render.sections import ELSEWHERE, Section, draw_all, latex_files, markdown_document, renew
from elmo_tasks.render.terminal import print_grids
from elmo_tasks.render.wandb import log_files
from elmo_tasks.rows.collection import Rows


@dataclass(frozen=True)
class Wanted:
    """What is to be written; without any of it, the tables are printed.

    Args:
        name: of the artifact on W&B.
        title: of the page.
        block: the markers of a document that are renewed.
        html: file of the page.
        latex: folder.
        figures: folder.
        into: document with markers.
        wandb: project.
    """

    name: str
    title: str = "The paper's tables, from rows"
    block: str = "tables"
    html: Path | None = None
    latex: Path | None = None
    figures: Path | None = None
    into: Path | None = None
    wandb: str | None = None

    @property
    def anything(self) -> bool:
        """Whether anything is to be written."""
        return any((self.html, self.latex, self.figures, self.into, self.wandb))

    @classmethod
    def from_options(cls, name: str, given: argparse.Namespace, **more: Any) -> Wanted:
        """What the options of :func:`add_options` say."""
        options = {key: getattr(given, key) for key in ("html", "latex", "figures", "into", "wandb")}
        return cls(name, **more, **options)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of :class:`Wanted`."""
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page: figures, tables, every run")
    parser.add_argument("--latex", type=Path, metavar="FOLDER", help="write the tables as LaTeX")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="write the figures as SVG and PNG")
    parser.add_argument("--wandb", metavar="PROJECT", help="log all of these to W&B as one artifact")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="write Markdown between the document's markers")


def write(sections: Sequence[Section], rows: Rows, wanted: Wanted) -> None:
    """Write what is wanted, or print; everything is rendered before anything is written."""
    if not wanted.anything:
        show(sections)
    files: dict[Path, bytes] = {}
    if wanted.html:
        files[wanted.html] = page(sections, rows, wanted.title).encode("utf-8")
    if wanted.latex:
        files |= {wanted.latex / name: content for name, content in latex_files(sections).items()}
    if wanted.figures:
        drawings = drawing_files(draw_all(sections))
        if not drawings:
            raise UserError(f"--figures: {sections[0].grid.title}: no figure is declared, or there is no row to draw")
        files |= {wanted.figures / name: content for name, content in drawings.items()}
    if wanted.into:
        text = renew(wanted.into.read_text("utf-8"), markdown_document(sections), wanted.block)
        files[wanted.into] = text.encode("utf-8")
    for path, content in files.items():
        write_bytes(path, content, remedy=ELSEWHERE)
        print(path)
    if wanted.wandb:
        everything = all_files(sections, rows, wanted.title)
        print(log_files(everything, wanted.wandb, name=wanted.name, n_runs=len(rows.finished)))


def show(sections: Sequence[Section]) -> None:
    """Print the tables: aligned in a terminal, as Markdown into a pipe or file."""
    if sys.stdout.isatty():
        print_grids(section.grid for section in sections if section.grid.header)
    else:
        print(markdown_document(sections), flush=True)


def all_files(sections: Sequence[Section], rows: Rows, title: str) -> dict[str, bytes]:
    """Everything: Markdown, LaTeX, figures and page."""
    whole = {"tables.md": f"{markdown_document(sections)}\n", "report.html": page(sections, rows, title)}
    texts = {name: text.encode("utf-8") for name, text in whole.items()}
    return texts | latex_files(sections) | drawing_files(draw_all(sections))
