"""The first page's table and chart: what ELMo brings to each task, from the committed rows.

``elmo-tasks table readme --into README.md --figure docs/gains.svg`` renews both: the table between the markers
``<!-- gains: begin -->`` and ``end`` of the document.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from elmo_tasks.command_line import run_command
from elmo_tasks.files import write_text
from elmo_tasks.places import EXPERIMENTS
from elmo_tasks.render.grid import Grid, markdown
from elmo_tasks.render.output import renew_file
from elmo_tasks.render.sections import ELSEWHERE, Section, draw_all
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables.gains import evaluate_gains

COLUMNS = ("task", "training items", "split", "seeds", "baseline", "ELMo", "gain", "95 % CI", "training")


def section() -> Section:
    """The gains on the real data sets."""
    return evaluate_gains(read_rows([EXPERIMENTS / "rows"]), data="local")


def table() -> str:
    """The main columns as Markdown."""
    whole = section().grid
    kept = [whole.header.index(name) for name in COLUMNS]
    lines = [[line[k] for k in kept] for line in whole.lines]
    return markdown(Grid(whole.title, [*COLUMNS], lines, whole.notes))


def figure() -> str:
    """The chart as SVG."""
    (drawing,) = draw_all([section()])
    return drawing.svg


def main(arguments: list[str]) -> None:
    """Print the table, or write what is asked for."""
    parser = argparse.ArgumentParser("elmo-tasks table readme", description="The first page's table and chart.")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="write the table between its markers")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="write the chart as SVG")
    given = parser.parse_args(arguments)
    if given.into:
        renew_file(given.into, table(), "gains")
    if given.figure:
        write_text(given.figure, figure(), ELSEWHERE)
    if not given.into and not given.figure:
        print(table())


if __name__ == "__main__":
    run_command(main)
