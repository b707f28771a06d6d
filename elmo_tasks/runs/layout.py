"""The names of a run's files (see :mod:`elmo_tasks.runs.folder`), and whether a folder is that of a finished run.

Nothing is imported here that takes time: a mistyped folder is said at once.
"""

from __future__ import annotations

from pathlib import Path

from elmo_tasks.errors import UserError

WEIGHTS, CONFIG, RUN, FITTED = "model.safetensors", "config.json", "run.json", "fitted.json"
BILM = "bilm"
"""The folder of a trained biLM, in that of its run."""
PREDICTIONS = "predictions"
WANDB = "wandb"
PARTIAL = ".partial"
"""What the folder of an unfinished run ends in."""


def expect_finished_run(folder: Path) -> None:
    """Check that a folder is that of a finished run with a task model.

    Raises:
        UserError: if not, saying what it is.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; expected that of a finished run, outputs/runs/ID")
    if folder.name.endswith(PARTIAL):
        raise UserError(f"{folder}: an unfinished run; the command that began it goes on with it")
    if (folder / BILM).is_dir():
        raise UserError(
            f"{folder}: this run trained a biLM and has no task model; use it with bilm.path={folder / BILM}"
        )
    if not (folder / RUN).is_file():
        raise UserError(f"{folder}: no {RUN} in it; expected the folder of one finished run, outputs/runs/ID")
