"""What a report writes: file names and contents."""

from __future__ import annotations

from elmo_tasks.report.document import text
from elmo_tasks.report.drawing import Drawing
from elmo_tasks.report.figures import figures
from elmo_tasks.report.page import Section, page
from elmo_tasks.report.rows import Rows
from elmo_tasks.report.tables import layers_table, mix_table, perplexity_table, results_table
from elmo_tasks.report.tex import latex

ELSEWHERE = "name another place"
"""What to do where a file cannot be written."""


def latex_files(rows: Rows) -> dict[str, bytes]:
    """``NAME.tex`` for each table."""
    tables = {"scores": results_table, "weights": mix_table, "layers": layers_table, "perplexities": perplexity_table}
    return {f"{name}.tex": latex(table(rows.finished)).encode("utf-8") for name, table in tables.items()}


def figure_files(drawings: list[Drawing]) -> dict[str, bytes]:
    """``NAME.svg`` and ``NAME.png`` for each figure."""
    files: dict[str, bytes] = {}
    for drawing in drawings:
        files |= {f"{drawing.name}.svg": drawing.svg.encode("utf-8"), f"{drawing.name}.png": drawing.png}
    return files


def page_of(rows: Rows, drawings: list[Drawing]) -> str:
    """The page with every table and figure."""
    drawn = {drawing.name: drawing for drawing in drawings}

    def pick(*names: str) -> list[Drawing]:
        return [drawn[name] for name in names if name in drawn]

    sections = [
        Section("Scores", [results_table(rows.finished)], pick("share", "lambda")),
        Section("Training curves", [], pick("epochs")),
        Section("Layer weights", [mix_table(rows.finished)], pick("weights")),
        Section("Layer store", [layers_table(rows.finished)]),
        Section("Training of biLMs", [grid for grid in [perplexity_table(rows.finished)] if grid.lines]),
    ]
    return page([section for section in sections if section.grids or section.drawings], rows)


def all_files(rows: Rows) -> dict[str, bytes]:
    """Everything: Markdown, LaTeX, figures and page."""
    drawings = figures(rows.finished)
    whole = {"tables.md": f"{text(rows)}\n", "report.html": page_of(rows, drawings)}
    return (
        {name: content.encode("utf-8") for name, content in whole.items()} | latex_files(rows) | figure_files(drawings)
    )
