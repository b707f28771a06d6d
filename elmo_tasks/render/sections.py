"""Sections, each with a table and figures, in every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from elmo_tasks.errors import UserError
from elmo_tasks.render.charts import gain_figure, weights_figure
from elmo_tasks.render.drawing import Drawing, draw, style
from elmo_tasks.render.figures import CAPTIONS, line_figure
from elmo_tasks.render.grid import Grid, markdown
from elmo_tasks.render.latex import latex
from elmo_tasks.render.series import LayerWeights, Pair, Panel, drawable

ELSEWHERE = "name another place"
"""What to do where a file cannot be written."""


@dataclass(frozen=True)
class Section:
    """A table, and the numbers that are drawn as its figures.

    Args:
        grid: the table, with the title of the section; it may have no columns.
        panels: curves.
        axis: what the x of the curves is, a key of ``figures.AXES``.
        mixes: layer weights.
        pairs: scores without and with ELMo.
    """

    grid: Grid
    panels: tuple[Panel, ...] = ()
    axis: str = ""
    mixes: tuple[LayerWeights, ...] = ()
    pairs: tuple[Pair, ...] = ()


def markdown_document(sections: Iterable[Section]) -> str:
    """The tables below their titles."""
    return "\n\n".join(f"**{s.grid.title}**\n\n{markdown(s.grid)}" for s in sections if s.grid.header)


def latex_files(sections: Sequence[Section]) -> dict[str, bytes]:
    """``NAME.tex`` for each table."""
    names = file_names(section.grid.title for section in sections)
    named = zip(names, sections, strict=True)
    return {f"{name}.tex": latex(section.grid).encode("utf-8") for name, section in named if section.grid.header}


def draw_all(sections: Sequence[Section]) -> list[Drawing]:
    """The figures of all sections, as files.

    Raises:
        UserError: if there is a figure to draw and matplotlib is not installed.
    """
    named = zip(file_names(section.grid.title for section in sections), sections, strict=True)
    return [drawing for name, section in named for drawing in _draw(name, section, png=True)]


def draw_apart(sections: Sequence[Section]) -> list[list[Drawing]]:
    """The figures of each section for a page, each panel by itself: it can be filtered, and fits a narrow screen."""
    found = []
    for name, section in zip(file_names(s.grid.title for s in sections), sections, strict=True):
        drawings = _draw(f"{name}-whole", replace(section, panels=()), png=False)
        for number, panel in enumerate(drawable(section.panels), start=1):
            (drawing,) = _draw(f"{name}-{number}", Section(section.grid, (panel,), section.axis), png=False)
            drawings.append(replace(drawing, tags=panel.tags))
        found.append(drawings)
    return found


def _draw(name: str, section: Section, *, png: bool) -> list[Drawing]:
    panels = drawable(section.panels)
    if not panels and not section.mixes and not section.pairs:
        return []
    with style():
        made = {
            section.axis: line_figure(panels, section.axis),
            "weights": weights_figure(section.mixes),
            "gain": gain_figure(section.pairs),
        }
        figures = [(kind, figure) for kind, figure in made.items() if figure is not None]
        names = [name, *(f"{name}-{kind}" for kind, _ in figures[1:])]
        parts = tuple(pair.tags for pair in section.pairs)
        return [
            draw(own_name, CAPTIONS[kind], figure, png=png, parts=parts if kind == "gain" else ())
            for own_name, (kind, figure) in zip(names, figures, strict=True)
        ]


def file_names(titles: Iterable[str]) -> list[str]:
    """Names of files after the titles of their tables, all different: ``table-1``, ``figure-1``, ``figure-1-2``."""
    names: list[str] = []
    for title in titles:
        name = re.sub(r"\W+", "-", title.split(":")[0].split(" (")[0].lower()).strip("-")
        twins = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", other) is not None for other in names)
        names.append(f"{name}-{twins + 1}" if name in names else name)
    return names


def renew(document: str, text: str, block: str = "results") -> str:
    """A Markdown document with ``text`` between its markers ``<!-- BLOCK: begin -->`` and ``<!-- BLOCK: end -->``.

    Raises:
        UserError: if the markers are not there.
    """
    marks = f"<!-- {block}: begin -->", f"<!-- {block}: end -->"
    head, begin, rest = document.partition(marks[0])
    _, end, tail = rest.partition(marks[1])
    if not begin or not end:
        raise UserError(f"the document has no {' ... '.join(marks)} to put the tables in")
    return f"{head}{begin}\n\n{text}\n\n{end}{tail}"
