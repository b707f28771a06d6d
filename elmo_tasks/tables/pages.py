"""Filled declarations as files: one HTML page with figures and every run, and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmo_tasks.report.drawing import Drawing, draw, style
from elmo_tasks.report.figures import CAPTIONS, line_figure, weights_figure
from elmo_tasks.report.grid import Grid, latex
from elmo_tasks.report.page import Section, page
from elmo_tasks.report.rows import Rows, read
from elmo_tasks.tables.fill import Filled


def html_page(filled: Sequence[Filled], folders: Iterable[Path]) -> str:
    """The tables with their figures, and the list of all runs in some folders.

    Raises:
        UserError: if there is a figure to draw and matplotlib is not installed.
    """
    sections = [
        Section(one.grid.title, [one.grid], _drawings(f"figure-{n}", one)) for n, one in enumerate(filled, start=1)
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


def _drawings(name: str, filled: Filled) -> list[Drawing]:
    """The figure of a declaration that has one, and rows to draw."""
    if not filled.panels and not filled.mixes:
        return []
    with style():
        figure = line_figure(filled.panels, filled.axis) if filled.panels else weights_figure(filled.mixes)
        assert figure is not None
        return [draw(name, CAPTIONS[filled.axis if filled.panels else "weights"], figure)]


def latex_files(grids: Iterable[Grid]) -> dict[str, str]:
    """``NAME.tex`` for each table, named after its title: ``table-1.tex``."""
    files: dict[str, str] = {}
    for grid in grids:
        name = re.sub(r"\W+", "-", grid.title.split(":")[0].split(" (")[0].lower()).strip("-")
        twins = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?\.tex", other) is not None for other in files)
        files[f"{name}-{twins + 1}.tex" if f"{name}.tex" in files else f"{name}.tex"] = latex(grid)
    return files
