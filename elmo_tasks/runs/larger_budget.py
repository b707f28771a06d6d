"""A run with a larger ``trainer.max_epochs`` uses what the same run with a smaller one has trained.

An epoch does not depend on how many may follow it. So a run that patience ended within the smaller budget would end at
the same epoch with the larger one: its result is taken over. Of any other, the saved state is taken over, and training
goes on from there.
"""

from __future__ import annotations

import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from elmo_tasks.errors import UserError, shortened
from elmo_tasks.files import OTHER_FOLDER, read_object, remove_stale, write_json
from elmo_tasks.lock import owned
from elmo_tasks.rows.convergence import has_converged
from elmo_tasks.rows.io import finished_row
from elmo_tasks.rows.schema import Row
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.layout import CONFIG, PREDICTIONS, RUN, WANDB
from elmo_tasks.training.checkpoint import STATE

NOT_COPIED = (WANDB, ".*.tmp")
"""W&B knows the smaller run by its own name; temporary files are of processes that were killed."""


@runtime_checkable
class Extendable(Protocol):
    """A run that is trained for some epochs.

    Attributes:
        run_id: the run's name.
        n_epochs: ``trainer.max_epochs``.
    """

    run_id: str
    n_epochs: int

    def with_smaller_budgets(self) -> Iterator[tuple[str, int]]:
        """Names of the same run with smaller ``trainer.max_epochs``, and these numbers, the largest first.

        There are none where an epoch depends on the budget.
        """


def use_smaller_budget(run: Extendable, folder: RunFolder) -> None:
    """Take over the result, or else the saved state, of the same run with a smaller budget.

    Nothing happens if there is neither, or if this run has a state of its own. A run that is being made at this moment
    is passed over. A process that is killed here leaves either all of it or nothing.

    Args:
        run: has no finished row.
        folder: of the run, whose lock this process holds.

    Raises:
        UserError: if the files cannot be copied.
    """
    if (folder.partial / STATE).exists():
        return
    for smaller, n_epochs in smaller_runs(run, folder):
        with ExitStack() as stack:
            try:
                stack.enter_context(owned(smaller.lock, wait=False))
            except UserError:
                continue
            smaller.check_links()
            smaller.settle()
            try:
                taken = _take_over(run, folder, smaller, finished_row(smaller.row))
            except OSError as error:
                reason = shortened(str(error), 160)
                raise UserError(f"{smaller.final}: cannot be copied ({reason}); check that there is space") from error
            if taken:
                about = f"the same run with trainer.max_epochs={n_epochs}"
                print(f"{run.run_id}: goes on from {smaller.run_id}, {about}", file=sys.stderr)
                return


def smaller_runs(run: Extendable, folder: RunFolder) -> Iterator[tuple[RunFolder, int]]:
    """The folders of the same run with smaller budgets, those that exist, and these budgets, the largest first."""
    if folder.has_namesakes():
        for run_id, n_epochs in run.with_smaller_budgets():
            if folder.of(run_id).exists():
                yield folder.of(run_id), n_epochs


def ended_by_patience(row: Row) -> bool:
    """Whether a larger budget would not have changed the result."""
    return row.training is not None and row.training.ended == "patience"


def _take_over(run: Extendable, folder: RunFolder, smaller: RunFolder, row: Row | None) -> bool:
    """Take over what there is, and return whether there was anything."""
    if row is not None and ended_by_patience(row):
        with _appearing(folder.partial) as copy:
            _copy_result(smaller, copy)
            _rename(copy, run)
        folder.publish(_with_budget(row, run), made=True)
        return True
    if (state := smaller.saved_state) is None:
        return False
    with _appearing(folder.partial) as copy:
        shutil.copytree(state.parent, copy, ignore=shutil.ignore_patterns(*NOT_COPIED, PREDICTIONS))
    return True


@contextmanager
def _appearing(partial: Path) -> Iterator[Path]:
    """A folder to be made, which then replaces the partial folder in one rename."""
    remove_stale(partial)
    temporary = partial.with_name(f".{partial.name}.{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        shutil.rmtree(partial, ignore_errors=True)
        temporary.rename(partial)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _copy_result(smaller: RunFolder, copy: Path) -> None:
    """Copy the folder of a finished run; where only its row is left, the predictions that lie beside it."""
    predictions = smaller.row.with_suffix("")
    if smaller.final.is_dir():
        shutil.copytree(smaller.final, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
    else:
        copy.mkdir(parents=True)
        if predictions.is_dir():
            shutil.copytree(predictions, copy / PREDICTIONS)


def _rename(copy: Path, run: Extendable) -> None:
    """Write the name and the budget of the run in place of those of the smaller one."""
    if (copy / RUN).exists():
        about = read_object(copy / RUN, {"run_id": str})
        config = read_object(copy / CONFIG, {"trainer": dict})
        about["run_id"], config["trainer"]["max_epochs"] = run.run_id, run.n_epochs
        write_json(copy / RUN, about, OTHER_FOLDER)
        write_json(copy / CONFIG, config, OTHER_FOLDER)


def _with_budget(row: Row, run: Extendable) -> Row:
    """The row that a run ended by patience would have with a larger budget."""
    training = row.training
    assert training is not None
    converged = has_converged("patience", best_epoch=training.best_epoch, max_epochs=run.n_epochs)
    return replace(
        row,
        run_id=run.run_id,
        config={**row.config, "trainer": {**row.config["trainer"], "max_epochs": run.n_epochs}},
        files={name.replace(row.run_id, run.run_id, 1): digest for name, digest in row.files.items()},
        training=replace(training, max_epochs=run.n_epochs, converged=converged),
    )
