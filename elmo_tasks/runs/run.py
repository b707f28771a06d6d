"""One run: configuration in, row out."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from math import nan
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from elmo_tasks.assembly import check_machine
from elmo_tasks.config.compose import validate
from elmo_tasks.errors import UserError, out_of_memory
from elmo_tasks.lock import owned
from elmo_tasks.processor import use_exact_products
from elmo_tasks.rows.io import finished_row, prepare_folder, write_row
from elmo_tasks.rows.provenance import provenance
from elmo_tasks.rows.schema import FailedRow, Header, Row
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.interface import Run, build_run, is_complete
from elmo_tasks.runs.larger_budget import Extendable, use_smaller_budget
from elmo_tasks.runs.plan import plan
from elmo_tasks.runs.summary import print_summary
from elmo_tasks.training.budget import budget_note
from elmo_tasks.training.cluster import check_start
from elmo_tasks.training.memory import keep_freed_memory
from elmo_tasks.training.progress import silence_lightning

LESS_MEMORY = (
    "or lower task.training.batch_tokens or batch_size (task=lm: task.data.batch_size); plan=true estimates the need"
)


def run(config: DictConfig) -> float:
    """As :func:`make_row`; the dev score that chose the checkpoint, or NaN for a plan."""
    row = make_row(config)
    return nan if row is None else row.score


def make_row(config: DictConfig) -> Row | None:
    """Make one run and write its row; a run that has a finished row is not repeated.

    Args:
        config: the composed Hydra configuration.

    Returns:
        the row; None with ``plan=true``, which shows a plan.

    Raises:
        UserError: for errors that the user can fix.
    """
    checked = validate(config)
    checked.check_components()
    cfg = checked.to_json()
    if not cfg["plan"]:  # which is made where the run is submitted
        check_start(cfg["trainer"]["devices"], cfg["trainer"]["num_nodes"])
    prepare_process(cfg)
    this_run = build_run(cfg)
    if this_run.rank == 0 and (note := budget_note(cfg["trainer"])):
        print(f"note: {note}", file=sys.stderr)
    folder = RunFolder(Path(cfg["paths"]["outputs"]), Path(cfg["results"]["dir"]), this_run.run_id)
    if cfg["plan"]:
        plan(cfg, this_run, folder)
        return None
    prepare_folder(folder.rows)
    with ExitStack() as stack:
        if this_run.rank == 0:  # the first of several processes owns the run for all of them
            stack.enter_context(owned(folder.lock, wait=cfg["if_running"] == "wait"))
            folder.check_links()
            folder.settle()
            if isinstance(this_run, Extendable) and not cfg["force"] and finished_row(folder.row) is None:
                use_smaller_budget(this_run, folder)
        finished = finished_row(folder.row)
        if finished is not None and is_complete(cfg, this_run, finished):
            curves = "" if has_curves(cfg, folder) else f", so there are no curves for logger={cfg['logger']['name']}"
            note = f"already finished; nothing was run{curves} (force=true repeats it)"
            print_summary(finished, folder.row, note=note)
            print_what_is_next(folder)
            return finished
        row = measure(cfg, this_run, folder, finished)
        folder.publish(row, made=finished is None or cfg["force"])
    print_summary(row, folder.row)
    print_what_is_next(folder)
    return row


def has_curves(cfg: dict[str, Any], folder: RunFolder) -> bool:
    """Whether a finished run has the curves of the logger that is asked for, if that keeps a folder of its own."""
    name = cfg["logger"]["name"]
    return name not in ("tensorboard", "wandb") or (folder.final / name).is_dir()


def print_what_is_next(folder: RunFolder) -> None:
    """What a user may want to do with a finished run."""
    if folder.can_go_on:
        print("trainer.max_epochs ended the training; a run with a larger one goes on from here")
    # W&B leaves an offline folder for each time that the run was started; the last one has all curves
    if offline := sorted(map(str, folder.final.glob("wandb/offline-run-*"))):
        print(f"upload the curves: wandb sync {offline[-1]}")


def prepare_process(cfg: dict[str, Any]) -> None:
    """Prepare the process for a run: threads, memory, a quiet Lightning, exact matrix products."""
    silence_lightning()
    keep_freed_memory()
    use_exact_products()
    threads = cfg["trainer"]["threads"]
    if threads is not None:
        torch.set_num_threads(threads)
        os.environ["OMP_NUM_THREADS"] = str(threads)  # of the processes that Lightning starts


def measure(cfg: dict[str, Any], this_run: Run, folder: RunFolder, finished: Row | None) -> Row:
    """Make a run and return its row; a crash leaves a failed row, unless there is a finished one.

    Raises:
        UserError: for errors that the user can fix.
    """
    check_machine(cfg)
    header = build_header(cfg, this_run)
    try:
        row = this_run.measure(folder, header, None if cfg["force"] else finished)
    except UserError as error:  # bad input is not a result
        raise error if this_run.rank == 0 else UserError(f"process {this_run.rank}: {error}") from None
    except OSError as error:
        if (sentence := out_of_memory(error, LESS_MEMORY)) is not None:
            raise sentence from error
        where = error.filename or f"paths.outputs={cfg['paths']['outputs']}"
        raise UserError(f"{where}: {error.strerror}; check that it can be written and that there is space") from error
    except Exception as error:
        if (sentence := out_of_memory(error, LESS_MEMORY)) is not None:  # of this machine: no result either
            raise sentence from error
        if this_run.rank == 0 and finished is None:
            message = "".join(traceback.format_exception_only(error)).strip()
            write_row(folder.row, FailedRow(**vars(header), error=message))
        raise
    return replace(row, created=header.created)  # where scores were added, code and settings are those of the training


def build_header(cfg: dict[str, Any], this_run: Run) -> Header:
    """The part of a row that is known before there is a result."""
    return Header(
        run_id=this_run.run_id,
        kind=this_run.kind,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        task=cfg["task"]["name"],
        slug=this_run.slug,
        seed=this_run.seed,
        scale=cfg["scale"]["name"],
        bilm=this_run.inputs.bilm,
        **provenance(),
        config=cfg,
    )
