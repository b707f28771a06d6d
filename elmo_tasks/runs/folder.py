"""The files of a run: its folder, a partial folder while it is running, and its row.

``runs/ID`` appears whole, by one rename, when the run has finished. Until then, and while ``force=true`` runs it again,
everything is written to ``runs/ID.partial``. If the process is killed, the earlier result is unchanged::

    runs/ID/model.safetensors   the weights that were scored; the row has their digest
            config.json         the resolved configuration
            run.json            the run's name, its biLM, and digests of its word vectors and weights
            fitted.json         what the model knows of its training data: vocabulary and labels
            metrics.csv         the curves; with logger=tensorboard or wandb, a folder of that name instead
            predictions/        in a benchmark's official format, by split, if the metric has one
            bilm/               of a run of task=lm: the trained biLM in the published layout

    runs/ID.partial             the same, and
            state.safetensors   the state from which training resumes

A finished run is published in this order; after a kill the next start goes on from there (:meth:`RunFolder.settle`):
its row is written into the partial folder, which from then on counts as finished; an earlier ``runs/ID`` is renamed to
``ID.replaced``, and ``ID.partial`` to ``ID``; the row and the predictions are copied to ``results.dir``; the row within
the folder is removed.

A run that ``trainer.max_epochs`` ended keeps its state, so that one with a larger budget can go on from it.
"""

from __future__ import annotations

import glob
import os
import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from elmo_tasks.config.identity import RunDigests
from elmo_tasks.data.fitted import FittedData
from elmo_tasks.errors import UserError
from elmo_tasks.files import (
    OTHER_FOLDER,
    remove_stale,
    remove_temporaries,
    sha256,
    write_atomically,
    write_json,
    write_text,
)
from elmo_tasks.rows.io import read_row, write_row
from elmo_tasks.rows.schema import Row
from elmo_tasks.runs.layout import CONFIG, FITTED, PARTIAL, PREDICTIONS, RUN, WANDB, WEIGHTS
from elmo_tasks.training.budget import epochs_stand_alone
from elmo_tasks.training.checkpoint import STATE


class RunFolder:
    """Where a run's files are.

    Args:
        outputs: ``paths.outputs``.
        rows: ``results.dir``.
        run_id: the run's name.
    """

    def __init__(self, outputs: Path, rows: Path, run_id: str) -> None:
        self.run_id, self.rows = run_id, rows
        self.final = outputs / "runs" / run_id
        self.partial = outputs / "runs" / f"{run_id}{PARTIAL}"
        self.lock = outputs / "runs" / f"{run_id}.lock"
        self.row = rows / f"{run_id}.json"
        self._replaced = outputs / "runs" / f"{run_id}.replaced"

    def of(self, run_id: str) -> RunFolder:
        """The files of another run."""
        return RunFolder(self.final.parent.parent, self.rows, run_id)

    def exists(self) -> bool:
        """Whether there is anything of the run, finished or not."""
        return any(path.exists() for path in (self.row, self.final, self.partial))

    def has_namesakes(self) -> bool:
        """Whether there are runs of the same task, model and seed with other settings."""
        name = glob.escape(self.run_id.rpartition("-")[0])
        found = [*self.rows.glob(f"{name}-*.json"), *self.final.parent.glob(f"{name}-*")]
        return any(path not in (self.row, self.final, self.partial, self.lock) for path in found)

    @property
    def saved_state(self) -> Path | None:
        """The state of training, of an interrupted run or of one that its budget ended."""
        return next((each / STATE for each in (self.partial, self.final) if (each / STATE).exists()), None)

    @property
    def can_go_on(self) -> bool:
        """Whether the run has finished, and a larger ``trainer.max_epochs`` would train it further."""
        return (self.final / STATE).exists()

    @property
    def pending(self) -> bool:
        """Whether a finished run has yet to be moved to its place, because its process was killed."""
        return self._unpublished_row(self.partial).exists() or self._unpublished_row(self.final).exists()

    def publish(self, row: Row, *, made: bool) -> None:
        """Publish a row, and the partial folder with it, in place of any earlier ones.

        Args:
            row: of the finished run.
            made: whether the partial folder is that of this row; else the row adds to what a finished run has.
        """
        if not made:
            self._publish_row(row, self.final)
            return
        self.partial.mkdir(parents=True, exist_ok=True)
        write_row(self._unpublished_row(self.partial), row)
        # From here on the run counts as finished, even if the process is killed.
        self.settle()

    def settle(self) -> None:
        """Move a finished run to its place, and remove the temporary files of processes that were killed."""
        for path in (self.row, self.partial):
            remove_stale(path, 0)
        for folder in (self.partial, self.final):
            remove_temporaries(folder)
        if self._unpublished_row(self.partial).exists():
            if self.final.exists():
                shutil.rmtree(self._replaced, ignore_errors=True)
                self.final.rename(self._replaced)
            self.partial.rename(self.final)
        finished = self._unpublished_row(self.final)
        if finished.exists():
            row = read_row(finished)
            if not isinstance(row, Row):
                raise UserError(f"{finished}: expected the row of a finished run; remove the folder that it is in")
            self._publish_row(row, self.final)
            if not ended_by_epochs(row):
                (self.final / STATE).unlink(missing_ok=True)
            finished.unlink()
            if not any(self.final.iterdir()):  # nothing was trained
                self.final.rmdir()
        shutil.rmtree(self._replaced, ignore_errors=True)

    def check_links(self) -> None:
        """Check that nothing in the run's folders is a link: what is written there would be written elsewhere.

        Only the folder of W&B, which is one for each process, has links; it is not looked into. The folders that the
        run's folders are in may be links, such as ``outputs`` to another disk.

        Raises:
            UserError: naming a link.
        """
        for folder in (self.partial, self.final, self.row.with_suffix("")):
            for parent, folders, files in os.walk(folder):
                for path in (Path(parent) / name for name in (*folders, *files)):
                    if path.is_symlink():
                        raise UserError(
                            f"{path}: a link in the folder of a run, which is not written through; remove it"
                        )
                if Path(parent) == folder and WANDB in folders:
                    folders.remove(WANDB)
        if self.partial.is_symlink():
            raise UserError(f"{self.partial}: a link in place of a run's folder; remove it")

    def check_weights(self, row: Row) -> Path:
        """The weights that a row was measured with.

        Raises:
            UserError: if they are missing or differ.
        """
        path = self.final / WEIGHTS
        again = f"run seed={row.seed} again with force=true"
        if not path.is_file():
            raise UserError(f"{path}: the weights of this run are missing; {again}")
        if sha256(path) != row.weights:
            raise UserError(f"{path}: not the weights that {self.row.name} was measured with; {again}")
        return path

    def write_predictions(self, folder: Path, split: str, contents: dict[str, str]) -> dict[str, str]:
        """Write predictions in a benchmark's official format; return their digests by path below the rows' folder."""
        found = {}
        for name, content in contents.items():
            path = folder / PREDICTIONS / split / name
            write_text(path, content, OTHER_FOLDER)
            found[f"{self.run_id}/{split}/{name}"] = sha256(path)
        return found

    def _publish_row(self, row: Row, folder: Path) -> None:
        predictions = folder / PREDICTIONS
        shown = self.row.with_suffix("")
        _copy_files(predictions, shown)
        for split in shown.iterdir() if shown.is_dir() else ():
            if not (predictions / split.name).is_dir():  # of earlier weights, which were scored on this split too
                shutil.rmtree(split)
        write_row(self.row, row)

    def _unpublished_row(self, folder: Path) -> Path:
        """The row of a run that has finished but has not been moved to its place yet."""
        return folder / self.row.name


def _copy_files(folder: Path, target: Path) -> None:
    """Copy all files below a folder, if it is there.

    Raises:
        UserError: naming a file that cannot be written.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            copy = target / path.relative_to(folder)
            try:
                write_atomically(copy, partial(shutil.copyfile, path))
            except OSError as error:
                raise UserError(
                    f"{copy}: cannot be written ({error.strerror}); the run has finished, so make room, or set "
                    "results.dir to another folder, and run the same command again"
                ) from error


def ended_by_epochs(row: Row) -> bool:
    """Whether a larger ``trainer.max_epochs`` would have trained a run further from where it ended."""
    ended = None if row.training is None else row.training.ended
    return row.kind == "supervised" and ended == "max_epochs" and epochs_stand_alone(row.config)


def write_model(folder: Path, run_id: str, cfg: dict[str, Any], inputs: RunDigests, fitted: FittedData) -> None:
    """Write what a prediction needs beside the weights; :func:`elmo_tasks.runs.saved.read_model` reads it."""
    remedy = "set paths.outputs to another folder"
    weights = sha256(folder / WEIGHTS)
    bilm = None if inputs.bilm is None else asdict(inputs.bilm)
    about = {"run_id": run_id, "bilm": bilm, "words": inputs.words, "weights": weights}
    write_json(folder / RUN, about, remedy)
    write_json(folder / CONFIG, cfg, remedy)
    write_json(folder / FITTED, fitted.to_json(), remedy)
