"""``python -m elmo_tasks.report ROWS``: prints tables, or writes them, figures and a page to files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from elmo_tasks.errors import UserError, end_quietly
from elmo_tasks.report.document import renew, text
from elmo_tasks.report.figures import figures
from elmo_tasks.report.outputs import ELSEWHERE, figure_files, latex_files, page_of
from elmo_tasks.report.rows import Rows, read
from elmo_tasks.report.wandb_report import log_report, save_dashboard
from elmo_tasks.results import write_bytes


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser("python -m elmo_tasks.report", description="Tables and figures from rows.")
    parser.add_argument("rows", type=Path, metavar="ROWS", help="folder of rows")
    parser.add_argument("document", type=Path, nargs="?", metavar="README.md", help="renew the block of this document")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained page")
    parser.add_argument("--latex", type=Path, metavar="FOLDER", help="write the tables as LaTeX (packages: README)")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="write the figures as SVG and PNG")
    parser.add_argument("--wandb", metavar="PROJECT", help="log all of these to W&B as one artifact")
    parser.add_argument("--dashboard", metavar="ENTITY/PROJECT", help="build the ablation dashboard on the W&B server")
    return parser


def main() -> None:
    """Do what the command line says; without any output, print the tables as Markdown."""
    given = arguments().parse_args()
    try:
        rows = read(given.rows)
        for sentence in rows.left_out:
            print(f"left out: {sentence}", file=sys.stderr)
        if rows.note:
            print(rows.note, file=sys.stderr)
        if not write(given, rows):
            print(text(rows), flush=True)
    except BrokenPipeError:
        end_quietly()
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")


def write(given: argparse.Namespace, rows: Rows) -> bool:
    """Everything is rendered before anything is written; whether anything was asked for."""
    files: dict[Path, bytes] = {}
    if given.document:
        files[given.document] = renew(given.document.read_text("utf-8"), text(rows)).encode("utf-8")
    drawings = figures(rows.finished) if given.html or given.figures else []
    if given.html:
        files[given.html] = page_of(rows, drawings).encode("utf-8")
    if given.latex:
        files |= {given.latex / name: content for name, content in latex_files(rows).items()}
    if given.figures:
        files |= {given.figures / name: content for name, content in figure_files(drawings).items()}
    for path, content in files.items():
        write_bytes(path, content, remedy=ELSEWHERE)
        if path != given.document:
            print(path)
    if given.wandb:
        print(log_report(rows, given.wandb))
    if given.dashboard:
        print(save_dashboard(rows, given.dashboard))
    return bool(files or given.wandb or given.dashboard)


if __name__ == "__main__":
    main()
