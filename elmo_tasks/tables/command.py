"""``elmo-tasks table table3``: print a table, list its missing runs, or run them."""

from __future__ import annotations

import os
from pathlib import Path

from elmo_tasks.command_line import Command
from elmo_tasks.errors import UserError
from elmo_tasks.render.output import write
from elmo_tasks.rows.collection import Rows, read_rows
from elmo_tasks.tables.declare import Declaration
from elmo_tasks.tables.declared_keys import refuse_declared
from elmo_tasks.tables.evaluate import evaluate
from elmo_tasks.tables.list_jobs import Job, plan
from elmo_tasks.tables.request import Request, read_request
from elmo_tasks.tables.run_jobs import run_jobs
from elmo_tasks.tables.texts import EvaluatedTable
from elmo_tasks.tables.wanted import NO_ROOT


def make_command(name: str, *declarations: Declaration) -> Command:
    """The command ``elmo-tasks table NAME`` of some declarations."""

    def command(arguments: list[str]) -> int:
        return execute(declarations, read_request(arguments, name))

    return command


def execute(declarations: tuple[Declaration, ...], request: Request) -> int:
    """Print, plan or run.

    Raises:
        UserError: if an override is one that a declaration sets.

    Returns:
        the exit status: 1 if something is still missing after a run.
    """
    refuse_declared(declarations, request.choice.overrides)
    rows, evaluated, jobs = _look(declarations, request)
    if request.given.missing:
        commands = [job.command(request.extra, request.launcher) for job in jobs]
        print("\n".join(commands or ["nothing is missing"]), flush=True)
        return 0
    if request.given.run:
        rows, evaluated, jobs = _run_all(declarations, jobs, request)
    title = "The paper's tables, from rows"
    write([one.section for one in evaluated], rows, request.given, name=request.name, title=title, block="tables")
    return 1 if request.given.run and jobs else 0


def _look(declarations: tuple[Declaration, ...], request: Request) -> tuple[Rows, list[EvaluatedTable], list[Job]]:
    """The tables evaluated from the rows, and the missing runs if they were asked for.

    Raises:
        UserError: if none of the declarations has a line of the chosen tasks.
    """
    rows = read_rows(request.folders)
    evaluated = [evaluate(declared, rows, request.choice) for declared in declarations]
    cells = [cell for one in evaluated for cell in one.cells]
    if not cells:
        titles = "; ".join(one.section.grid.title for one in evaluated)
        raise UserError(f"tasks={','.join(sorted(request.choice.tasks))}: no line of that task in: {titles}")
    evaluated = [one for one in evaluated if one.cells]
    if not request.given.missing and not request.given.run:
        return rows, evaluated, []
    return rows, evaluated, plan(cells, rows, request.folders[-1], one_job_per_setting=bool(request.launcher))


def _run_all(
    declarations: tuple[Declaration, ...], jobs: list[Job], request: Request
) -> tuple[Rows, list[EvaluatedTable], list[Job]]:
    """Run the jobs, then those that can only be planned when others have ended; each is tried once."""
    tried = list[Job]()
    while True:
        _run([job for job in jobs if job not in tried], request)
        tried += jobs
        rows, evaluated, jobs = _look(declarations, request)
        if all(job in tried for job in jobs):
            return rows, evaluated, jobs


def _run(jobs: list[Job], request: Request) -> None:
    """Run some jobs.

    Raises:
        UserError: if data.root is not set.
    """
    if not jobs:
        print("nothing is missing\n")
        return
    if any(f"data.root={NO_ROOT}" in job.wanted.overrides for job in jobs):
        raise UserError("data.root is not set; add data.root=DIR to the command line, or data=sample")
    names = {text.partition("=")[0] for text in request.choice.overrides}
    quiet: tuple[str, ...] = () if "trainer.progress" in names else ("trainer.progress=false",)
    if request.given.j > 1 and not request.launcher and "trainer.threads" not in names:
        quiet += (f"trainer.threads={max(1, (os.cpu_count() or 1) // request.given.j)}",)
    logs = Path(jobs[0].wanted.config["paths"]["outputs"]) / "logs"
    print(f"{len(jobs)} to run, {request.given.j} at a time; logs in {logs}", flush=True)
    extra = (*request.extra, *quiet)
    failed = run_jobs(jobs, at_a_time=request.given.j, logs=logs, extra=extra, launcher=request.launcher)
    print(f"{len(jobs) - len(failed)} done, {len(failed)} failed\n", flush=True)
