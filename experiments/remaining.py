"""How many runs of the paper's tables there are, and how many are still to be made, from the committed rows.

``elmo-tasks table remaining --into docs/results.md`` renews the table between the markers
``<!-- remaining: begin -->`` and ``end`` of the document.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.command_line import run_command
from elmo_tasks.places import EXPERIMENTS
from elmo_tasks.render.grid import Grid, markdown
from elmo_tasks.render.output import renew_file
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables.collect import Cell, Choice
from elmo_tasks.tables.evaluate import evaluate

from .paper import DECLARED

ROWS = EXPERIMENTS / "rows"
BLOCK = "remaining"


Run = tuple[str, int, bool]
"""The key of a setting, the seed (0 for an ensemble), and whether it is an ensemble."""


def table() -> str:
    """Runs that are there, of those that a table asks for, by table and task, as Markdown."""
    rows = read_rows([ROWS])
    evaluated = [evaluate(declared, rows, Choice(("data=local",))) for declared in DECLARED]
    counts = [(one.section.grid.title, count_runs(one.cells)) for one in evaluated]
    tasks = sorted({task for _, by_task in counts for task in by_task})
    lines = [[title, *(by_task.get(task, "") for task in tasks)] for title, by_task in counts]
    runs = [run for one in evaluated for of_task in _runs(one.cells).values() for run in of_task.items()]
    notes = [f"{len({run for run, is_there in runs if not is_there})} are still to be made; several tables share a run"]
    return markdown(Grid("Runs of the paper's tables", ["", *tasks], lines, notes))


def count_runs(cells: Iterable[Cell]) -> dict[str, str]:
    """``there of asked`` by task; a run that several cells share counts once."""
    return {task: f"{sum(runs.values())} of {len(runs)}" for task, runs in _runs(cells).items()}


def _runs(cells: Iterable[Cell]) -> dict[str, dict[Run, bool]]:
    """By task: each run that the cells ask for, and whether it is there."""
    found: dict[str, dict[Run, bool]] = {}
    for cell in cells:
        runs = found.setdefault(cell.wanted.config["task"]["name"], {})
        for seed in (0,) if cell.ensemble else cell.seeds:
            runs[cell.wanted.key, seed, cell.ensemble] = seed not in cell.due
    return found


def main(arguments: list[str]) -> None:
    """Print the table, or write it into a document."""
    parser = argparse.ArgumentParser("elmo-tasks table remaining", description="Runs that are still to be made.")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="write the table between its markers")
    given = parser.parse_args(arguments)
    if given.into:
        renew_file(given.into, table(), BLOCK)
    else:
        print(table())


if __name__ == "__main__":
    run_command(main)
