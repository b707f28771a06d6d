"""``python -m experiments.table3``: print a table, or the runs that it lacks, or make them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from elmo_tasks.errors import UserError, end_quietly
from elmo_tasks.report.document import renew
from elmo_tasks.report.outputs import ELSEWHERE, figure_files
from elmo_tasks.report.wandb_report import log_files
from elmo_tasks.results import write_bytes
from elmo_tasks.tables.declare import Declaration
from elmo_tasks.tables.fill import Filled, fill
from elmo_tasks.tables.jobs import run_jobs
from elmo_tasks.tables.pages import all_files, draw_all, html_page, latex_files, markdown_text
from elmo_tasks.tables.plan import Job, plan
from elmo_tasks.tables.request import Request, read_request, refuse_declared
from elmo_tasks.tables.rows import read_rows
from elmo_tasks.tables.settings import NO_ROOT


def main(*declarations: Declaration) -> None:
    """The command line of a declaration's file."""
    try:
        status = execute(declarations, read_request(sys.argv[1:], Path(sys.argv[0]).stem))
    except BrokenPipeError:
        end_quietly()
        status = 0
    except KeyboardInterrupt:
        print("stopped; finished runs are kept, and the same command does what is left", file=sys.stderr)
        status = 128 + signal.SIGINT
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
    sys.exit(status)


def execute(declarations: tuple[Declaration, ...], request: Request) -> int:
    """Print, plan or run.

    Raises:
        UserError: if an override is one that a declaration sets.

    Returns:
        the exit status: 1 if something is still missing after a run.
    """
    refuse_declared(declarations, request.choice.overrides)
    filled, jobs = _look(declarations, request)
    if request.missing:
        commands = [job.command(request.extra, request.launcher) for job in jobs]
        print("\n".join(commands or ["nothing is missing"]), flush=True)
        return 0
    if request.run:
        filled, jobs = _run_all(declarations, jobs, request)
    if not _write(filled, request):
        print(markdown_text(filled), flush=True)
    return 1 if request.run and jobs else 0


def _write(filled: list[Filled], request: Request) -> bool:
    """What was asked for, if anything was; everything is rendered before anything is written."""
    files: dict[Path, bytes] = {}
    drawings = draw_all(filled) if request.html or request.figures else {}
    if request.html:
        files[request.html] = html_page(filled, drawings, request.folders).encode("utf-8")
    if request.latex:
        tables = latex_files([one.grid for one in filled])
        files |= {request.latex / name: content.encode("utf-8") for name, content in tables.items()}
    if request.figures:
        if not drawings:
            raise UserError(f"--figures: {filled[0].grid.title}: no figure is declared, or there is no row to draw")
        files |= {request.figures / name: content for name, content in figure_files([*drawings.values()]).items()}
    if request.into:
        text = renew(request.into.read_text("utf-8"), markdown_text(filled), "tables")
        files[request.into] = text.encode("utf-8")
    for path, content in files.items():
        write_bytes(path, content, remedy=ELSEWHERE)
        print(path)
    if request.wandb:
        rows = {run_id for one in filled for cell in one.cells for run_id in cell.run_ids}
        whole = all_files(filled, request.folders)
        print(log_files(whole, request.wandb, name=request.name, n_runs=len(rows)))
    return bool(files or request.wandb)


def _look(declarations: tuple[Declaration, ...], request: Request) -> tuple[list[Filled], list[Job]]:
    """What the rows say now, and what they lack if that was asked.

    Raises:
        UserError: if none of the declarations has a line of the chosen tasks.
    """
    rows = read_rows(request.folders)
    filled = [fill(declared, rows, request.choice) for declared in declarations]
    cells = [cell for one in filled for cell in one.cells]
    if not cells:
        titles = "; ".join(one.grid.title for one in filled)
        raise UserError(f"tasks={','.join(sorted(request.choice.tasks))}: no line of that task in: {titles}")
    if not request.missing and not request.run:
        return filled, []
    return filled, plan(cells, rows, request.folders[-1], together=bool(request.launcher))


def _run_all(
    declarations: tuple[Declaration, ...], jobs: list[Job], request: Request
) -> tuple[list[Filled], list[Job]]:
    """Make the runs, and those that can be asked for only when others have ended; each is tried once."""
    tried = list[Job]()
    while True:
        _run([job for job in jobs if job not in tried], request)
        tried += jobs
        filled, jobs = _look(declarations, request)
        if all(job in tried for job in jobs):
            return filled, jobs


def _run(jobs: list[Job], request: Request) -> None:
    """Make some runs.

    Raises:
        UserError: if it was not said where the data are.
    """
    if not jobs:
        print("nothing is missing\n")
        return
    if any(f"data.root={NO_ROOT}" in job.setting.overrides for job in jobs):
        raise UserError("data.root is not set; add data.root=DIR to the command line, or data=sample")
    names = {text.partition("=")[0] for text in request.choice.overrides}
    quiet: tuple[str, ...] = () if "trainer.progress" in names else ("trainer.progress=false",)
    if request.at_a_time > 1 and not request.launcher and "trainer.threads" not in names:
        quiet += (f"trainer.threads={max(1, (os.cpu_count() or 1) // request.at_a_time)}",)
    logs = Path(jobs[0].setting.config["paths"]["outputs"]) / "logs"
    print(f"{len(jobs)} to run, {request.at_a_time} at a time; logs in {logs}", flush=True)
    extra = (*request.extra, *quiet)
    failed = run_jobs(jobs, at_a_time=request.at_a_time, logs=logs, extra=extra, launcher=request.launcher)
    print(f"{len(jobs) - len(failed)} done, {len(failed)} failed\n", flush=True)
