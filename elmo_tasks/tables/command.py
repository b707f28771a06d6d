"""``python -m experiments.table3``: print a table, or the runs that it lacks, or make them."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from elmo_tasks.errors import UserError
from elmo_tasks.report.grid import markdown
from elmo_tasks.results import write_text
from elmo_tasks.tables.declare import Declaration
from elmo_tasks.tables.fill import Filled, fill
from elmo_tasks.tables.jobs import run_jobs
from elmo_tasks.tables.measure import Choice
from elmo_tasks.tables.pages import html_page, latex_files
from elmo_tasks.tables.plan import Job, plan
from elmo_tasks.tables.rows import read_rows
from elmo_tasks.tables.settings import NO_ROOT, REPO, setting

COMMITTED = REPO / "experiments" / "rows"

_EPILOG = """
overrides are those of run.py and hold for all cells (scale=paper bilm=original bilm.path=DIR data=sample ...);
data=local unless another one is given. Besides them:
  rows=A,B       folders of rows that are read; new ones are written into the last
                 (experiments/rows and the configuration's results.dir)
  seeds=N        the seeds 1 to N in place of the declared number
  tasks=A,B      these tasks' lines only
  fraction=X     data.fraction=X
  hydra/launcher=NAME hydra.launcher.KEY=VALUE   with --run: the seeds of a setting as one sweep through this launcher
"""


@dataclass(frozen=True)
class Request:
    """A command line, read."""

    choice: Choice
    folders: tuple[Path, ...]
    extra: tuple[str, ...]
    launcher: tuple[str, ...]
    missing: bool
    run: bool
    at_a_time: int
    html: Path | None = None
    latex: Path | None = None


def main(*declarations: Declaration) -> None:
    """The command line of a declaration's file."""
    try:
        status = execute(declarations, read_request(sys.argv[1:]))
    except UserError as error:
        sys.exit(f"error: {error}")
    except BrokenPipeError:  # whoever reads, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)


def execute(declarations: tuple[Declaration, ...], request: Request) -> int:
    """Print, plan or run.

    Returns:
        the exit status: 1 if something is still missing after a run.
    """
    filled, jobs = _look(declarations, request)
    if request.missing:
        commands = [job.command(request.extra, request.launcher) for job in jobs]
        print("\n".join(commands or ["nothing is missing"]), flush=True)
        return 0
    if request.run:
        filled, jobs = _run_all(declarations, jobs, request)
    if not _write(filled, request):
        print("\n\n".join(f"**{one.grid.title}**\n\n{markdown(one.grid)}" for one in filled), flush=True)
    return 1 if request.run and jobs else 0


def _write(filled: list[Filled], request: Request) -> bool:
    """The files that were asked for, if any were."""
    files: dict[Path, str] = {}
    if request.html:
        files[request.html] = html_page(filled, request.folders)
    if request.latex:
        files |= {request.latex / name: content for name, content in latex_files(one.grid for one in filled).items()}
    for path, content in files.items():
        write_text(path, content)
        print(path)
    return bool(files)


def _look(declarations: tuple[Declaration, ...], request: Request) -> tuple[list[Filled], list[Job]]:
    """What the rows say now, and what they lack."""
    rows = read_rows(request.folders)
    filled = [fill(declared, rows, request.choice) for declared in declarations]
    cells = [cell for one in filled for cell in one.cells]
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
    if request.at_a_time > 1 and "trainer.threads" not in names:
        quiet += (f"trainer.threads={max(1, (os.cpu_count() or 1) // request.at_a_time)}",)
    logs = Path(jobs[0].setting.config["paths"]["outputs"]) / "logs"
    print(f"{len(jobs)} to run, {request.at_a_time} at a time; logs in {logs}", flush=True)
    extra = (*request.extra, *quiet)
    failed = run_jobs(jobs, at_a_time=request.at_a_time, logs=logs, extra=extra, launcher=request.launcher)
    print(f"{len(jobs) - len(failed)} done, {len(failed)} failed\n", flush=True)


def read_request(arguments: list[str]) -> Request:
    """Read a command line.

    Raises:
        UserError: for a word that is no override, and for a key that the declaration sets.
    """
    parser = argparse.ArgumentParser(
        prog="python -m experiments.NAME", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.error = _refuse  # type: ignore[method-assign]
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--missing", action="store_true", help="print the commands that are still to be run")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write one page, with every run")
    parser.add_argument("--latex", type=Path, metavar="FOLDER", help="write LaTeX (package booktabs)")
    what.add_argument("--run", action="store_true", help="run them; run again, it does what is left")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="with --run: processes at a time")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    read = parser.parse_intermixed_args(arguments)
    if read.j < 1:
        raise UserError(f"-j must be a whole number of at least 1, found {read.j}")
    return _request(read)


def _request(read: argparse.Namespace) -> Request:
    own: dict[str, str] = {}
    overrides: list[str] = []
    launcher: list[str] = []
    for text in read.overrides:
        key, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"{text}: expected KEY=VALUE; see --help")
        if key in ("seed", "test", "ensemble", "force", "results.dir", "task"):
            raise UserError(f"{text}: a table sets {key} itself; see --help for seeds=, rows= and tasks=")
        if key in ("rows", "seeds", "tasks"):
            own[key] = value
        elif key.startswith(("hydra/", "hydra.")):
            launcher.append(text)
        else:
            overrides.append(f"data.fraction={value}" if key == "fraction" else text)
    if not any(text.startswith("data=") for text in overrides):
        overrides.insert(0, "data=local")
    seeds = own.get("seeds")
    if seeds is not None and not (seeds.isdecimal() and int(seeds) > 0):
        raise UserError(f"seeds must be a whole number of at least 1, found {seeds}")
    written = Path(setting(tuple(overrides)).config["results"]["dir"])
    folders = tuple(map(Path, own["rows"].split(","))) if "rows" in own else (COMMITTED, written)
    return Request(
        choice=Choice(tuple(overrides), int(seeds) if seeds else None, _tasks(own.get("tasks"))),
        folders=folders,
        extra=() if folders[-1] == written else (f"results.dir={folders[-1]}",),
        launcher=tuple(launcher),
        missing=read.missing,
        run=read.run,
        at_a_time=read.j,
        html=read.html,
        latex=read.latex,
    )


def _tasks(text: str | None) -> frozenset[str]:
    if text is None:
        return frozenset()
    known = {path.stem for path in (REPO / "conf" / "task").glob("*.yaml")}
    for name in text.split(","):
        if name not in known:
            raise UserError(f"tasks={text}: no task {name!r}; there are {', '.join(sorted(known))}")
    return frozenset(text.split(","))


def _refuse(message: str) -> NoReturn:
    raise UserError(f"{message}; see --help")
