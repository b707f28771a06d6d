"""``elmo-tasks report ROWS``: all that some rows measured, as tables, figures and a page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from elmo_tasks.command_line import run_command
from elmo_tasks.errors import UserError
from elmo_tasks.render.output import add_options, asks_for_files, write
from elmo_tasks.render.sections import Section
from elmo_tasks.render.wandb import save_dashboard
from elmo_tasks.rows.collection import Rows, read_rows


def sections(rows: Rows) -> list[Section]:
    """All that some rows measured."""
    from elmo_tasks.tables.report_sections import PARTS  # Hydra and SciPy take a second to import

    return [part(rows) for part in PARTS.values()]


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser("elmo-tasks report", description="Tables and figures from rows.")
    parser.add_argument("rows", type=Path, metavar="ROWS", help="folder of rows")
    add_options(parser)
    parser.add_argument("--dashboard", metavar="ENTITY/PROJECT", help="build the ablation dashboard on the W&B server")
    return parser


def main(arguments: list[str]) -> None:
    """Do what the command line says; without any output, print the tables.

    Raises:
        UserError: if there are no rows, or something cannot be written.
    """
    given = make_parser().parse_args(arguments)
    rows = read_report(given.rows)
    for sentence in rows.left_out:
        print(f"left out: {sentence}", file=sys.stderr)
    if given.dashboard:
        print(save_dashboard(rows.finished, given.dashboard))
    if not given.dashboard or asks_for_files(given):
        write(sections(rows), rows, given, name="report", title="ELMo downstream tasks", block="results")


def read_report(folder: Path) -> Rows:
    """The rows of a folder.

    Raises:
        UserError: if there is none, or none that can be used.
    """
    rows = read_rows([folder])
    if rows.finished or rows.failed:
        return rows
    if folder.is_file():
        raise UserError(f"{folder}: a file; expected the folder of rows that it is in")
    if rows.left_out:
        raise UserError(f"{folder}: none of {len(rows.left_out)} files is a usable row; the first: {rows.left_out[0]}")
    raise UserError(f"{folder}: no rows (*.json) here; a run writes its row into results.dir")


if __name__ == "__main__":
    run_command(main)
