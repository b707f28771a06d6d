"""What a run will take, before it starts: ``plan=true``."""

from __future__ import annotations

from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.planning.plan import DoneSoFar
from elmo_tasks.planning.show import show
from elmo_tasks.rows.io import finished_row
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.interface import Plannable, Run, is_complete
from elmo_tasks.runs.larger_budget import Extendable, ended_by_patience, smaller_runs
from elmo_tasks.training.checkpoint import STATE
from elmo_tasks.training.state_file import read_updates


def plan(cfg: dict[str, Any], this_run: Run, folder: RunFolder) -> None:
    """Show what a run will take, and what the runs of a sweep take together.

    Raises:
        UserError: if it does not fit this machine, or the kind of run has no plan.
    """
    if not isinstance(this_run, Plannable):
        raise UserError(
            f"plan=true: task={cfg['task']['name']} has no plan; plan=true is available for supervised tasks only"
        )
    show(this_run.plan(done_so_far(cfg, this_run, folder)))


def done_so_far(cfg: dict[str, Any], this_run: Run, folder: RunFolder) -> DoneSoFar:
    """What earlier processes have done of a run, or of the same run with a smaller budget.

    Raises:
        UserError: if its saved state is damaged.
    """
    finished, state = finished_row(folder.row), folder.partial / STATE
    if finished is not None and not cfg["force"]:
        return DoneSoFar(trained=True, scored=is_complete(cfg, this_run, finished))
    if state.exists() and (finished is not None or not cfg["force"]):
        return DoneSoFar(updates=read_updates(state))
    if isinstance(this_run, Extendable) and not cfg["force"]:
        for smaller, _ in smaller_runs(this_run, folder):
            row = finished_row(smaller.row)
            if row is not None and ended_by_patience(row):
                return DoneSoFar(trained=True, scored=is_complete(cfg, this_run, row))
            if smaller.saved_state is not None:
                return DoneSoFar(updates=read_updates(smaller.saved_state))
    return DoneSoFar()
