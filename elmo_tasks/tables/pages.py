"""Filled declarations as files: one HTML page with figures and every run, LaTeX, and the figures by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmo_tasks.report.drawing import Drawing, draw, style
from elmo_tasks.report.figures import CAPTIONS, line_figure, weights_figure
from elmo_tasks.report.grid import Grid, markdown
from elmo_tasks.report.outputs import figure_files
from elmo_tasks.report.page import Section, page
from elmo_tasks.report.rows import Rows, read
from elmo_tasks.report.tex import latex
from elmo_tasks.tables.fill import Filled


def markdown_text(filled: Iterable[Filled]) -> str:
    """The tables below their titles."""
    return "\n\n".join(f"**{one.grid.title}**\n\n{markdown(one.grid)}" for one in filled)


def html_page(filled: Sequence[Filled], drawings: dict[str, Drawing], folders: Iterable[Path]) -> str:
    """The tables with their figures, and the list of all runs in some folders.

    Args:
        filled: shown in this order.
        drawings: of :func:`draw_all`.
        folders: of rows.
    """
    names = file_names(one.grid.title for one in filled)
    sections = [
        Section(one.grid.title, [one.grid], [drawings[name]] if name in drawings else [])
        for name, one in zip(names, filled, strict=True)
    ]
    runs = Rows([], [], [])
    known: set[str] = set()
    for folder in folders:
        found = read(folder) if any(folder.glob("*.json")) else Rows([], [], [])
        for ours, theirs in ((runs.finished, found.finished), (runs.failed, found.failed)):
            ours += [row for row in theirs if row["run_id"] not in known]
        known |= {row["run_id"] for row in [*found.finished, *found.failed]}
        runs.left_out.extend(found.left_out)
    return page(sections, runs, title="The paper's tables, from rows")


def draw_all(filled: Sequence[Filled]) -> dict[str, Drawing]:
    """The figures of those declarations that have one, and rows to draw, by name.

    Raises:
        UserError: if there is a figure to draw and matplotlib is not installed.
    """
    drawings = {}
    for name, one in zip(file_names(one.grid.title for one in filled), filled, strict=True):
        if one.panels or one.mixes:
            with style():
                figure = line_figure(one.panels, one.axis) if one.panels else weights_figure(one.mixes)
                assert figure is not None
                drawings[name] = draw(name, CAPTIONS[one.axis if one.panels else "weights"], figure)
    return drawings


def latex_files(grids: Sequence[Grid]) -> dict[str, str]:
    """``NAME.tex`` for each table."""
    names = file_names(grid.title for grid in grids)
    return {f"{name}.tex": latex(grid) for name, grid in zip(names, grids, strict=True)}


def file_names(titles: Iterable[str]) -> list[str]:
    """Names of files after the titles of their tables, all different: ``table-1``, ``figure-1``, ``figure-1-2``."""
    names: list[str] = []
    for title in titles:
        name = re.sub(r"\W+", "-", title.split(":")[0].split(" (")[0].lower()).strip("-")
        twins = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", other) is not None for other in names)
        names.append(f"{name}-{twins + 1}" if name in names else name)
    return names


def all_files(filled: Sequence[Filled], folders: Iterable[Path]) -> dict[str, bytes]:
    """Everything: Markdown, LaTeX, figures and page."""
    drawings = draw_all(filled)
    whole = {"tables.md": f"{markdown_text(filled)}\n", "report.html": html_page(filled, drawings, folders)}
    whole |= latex_files([one.grid for one in filled])
    return {name: text.encode("utf-8") for name, text in whole.items()} | figure_files([*drawings.values()])
