"""The missing runs of table cells, as command lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from elmo_tasks.config.identity import slug
from elmo_tasks.places import HOME
from elmo_tasks.rows.collection import Rows
from elmo_tasks.tables.collect import Cell, find_cell
from elmo_tasks.tables.wanted import Wanted

Run = tuple[str, tuple[int, ...]]
"""The key of a configuration with its files, and the seeds."""


@dataclass(frozen=True)
class Job:
    """One command line of ``run.py``: seeds of one setting, or their ensemble.

    Args:
        wanted: whose overrides it has.
        seeds: to be run (more than one with a launcher only), or the ensemble's members.
        ensemble: whether finished runs are averaged, and nothing is trained.
        test: whether the test set is to be scored too.
        force: whether finished runs are repeated, because their weights are needed and were deleted.
    """

    wanted: Wanted
    seeds: tuple[int, ...]
    ensemble: bool = False
    test: bool = False
    force: bool = False

    @property
    def name(self) -> str:
        """A name for its log, with the key of its setting; the digest of a run ID covers its data too."""
        kind = "e" if self.ensemble else "s"
        config = self.wanted.config
        seeds = "-".join(map(str, self.seeds))
        return f"{config['task']['name']}-{slug(config, self.wanted.kind)}-{kind}{seeds}-setting-{self.wanted.run_key}"

    def arguments(self, extra: tuple[str, ...] = (), launcher: tuple[str, ...] = ()) -> list[str]:
        """The arguments of ``run.py``, with further overrides that change no score, and those of a Hydra launcher."""
        seeds = ",".join(map(str, self.seeds))
        which = f"ensemble=[{seeds}]" if self.ensemble else f"seed={seeds}"
        flags = [f"{flag}=true" for flag, holds in (("test", self.test), ("force", self.force)) if holds]
        return [*(["-m", *launcher] if launcher else []), *self.wanted.overrides, which, *flags, *extra]

    def command(self, extra: tuple[str, ...] = (), launcher: tuple[str, ...] = ()) -> str:
        """The command line, quoted for a shell in this folder."""
        program = ("python", "run.py") if Path("run.py").absolute() == HOME / "run.py" else ("elmo-tasks", "run")
        return shlex.join([*program, *self.arguments(extra, launcher)])


def plan(cells: Iterable[Cell], rows: Rows, store: Path, *, one_job_per_setting: bool = False) -> list[Job]:
    """The runs that are due; ensembles come last, after their members.

    Args:
        cells: of one table or more; a run that several of them need is one job.
        rows: that the cells were found in.
        store: the folder into which rows are written, where an ensemble looks for its members.
        one_job_per_setting: all seeds of a setting in one job, for a launcher.
    """
    runs, ensembles = dict[Run, Job](), dict[Run, Job]()
    for cell in cells:
        on_test, due = cell.split == "test", cell.due
        if cell.needs_weights or (cell.ensemble and due):
            seeds = _without_weights(cell, rows, store)
        else:
            seeds = dict.fromkeys(() if cell.ensemble else due, False)
        for seed, force in seeds.items():
            _add(runs, Job(cell.wanted, (seed,), test=on_test and not cell.ensemble, force=force))
        if cell.ensemble and due:
            _add(ensembles, Job(cell.wanted, cell.seeds, ensemble=True, test=on_test))
    return [*(_joined(runs.values()) if one_job_per_setting else runs.values()), *ensembles.values()]


def _add(jobs: dict[Run, Job], job: Job) -> None:
    """Add a job; one of the same run does what either asks for."""
    before = jobs.get(run := (job.wanted.run_key, job.seeds), job)
    jobs[run] = replace(job, test=job.test or before.test, force=job.force or before.force)


def _without_weights(cell: Cell, rows: Rows, store: Path) -> dict[int, bool]:
    """The seeds whose row or weights are missing, each with whether it has a row, so that its run must be repeated."""
    members = find_cell(rows, cell.wanted, split="dev", seeds=cell.seeds)
    due = members.due
    runs = Path(cell.wanted.config["paths"]["outputs"]) / "runs"
    wanted = {}
    for seed in cell.seeds:
        run_id = "" if seed in due else members.rows[seed].run_id
        has_row = (store / f"{run_id}.json").is_file()
        if cell.needs_weights or not (has_row and (runs / run_id / "model.safetensors").is_file()):
            wanted[seed] = has_row
    return wanted


def _joined(jobs: Iterable[Job]) -> list[Job]:
    """Jobs that differ in their seed as one."""
    groups: dict[tuple[str, bool, bool], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.wanted.run_key, job.test, job.force), []).append(job)
    return [
        Job(same[0].wanted, tuple(sorted(seed for job in same for seed in job.seeds)), test=test, force=force)
        for (_, test, force), same in groups.items()
    ]
