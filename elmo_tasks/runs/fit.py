"""Training: what the runs of supervised tasks and language models have in common."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import Logger, WandbLogger

from elmo_tasks.assembly.trainer import build_logger, build_trainer
from elmo_tasks.errors import UserError
from elmo_tasks.rows.convergence import has_converged
from elmo_tasks.rows.fields import Ended
from elmo_tasks.rows.io import finished_row
from elmo_tasks.rows.parts import TrainingRecord
from elmo_tasks.rows.provenance import current_code
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.layout import WEIGHTS
from elmo_tasks.training.budget import Budget
from elmo_tasks.training.callbacks import AverageWeights, BestCheckpoint, Patience, ScoreDev, curve_point
from elmo_tasks.training.checkpoint import STATE, ResumeCheckpoint
from elmo_tasks.training.module import TaskModule

SAVED_EVERY = 600.0
"""Seconds of training that are lost at most if the process is killed."""


@dataclass(frozen=True)
class Fit:
    """A model that has been trained, with its best weights.

    Attributes:
        training: as in the row.
        seconds: of training, in all processes that the run was resumed in.
        device: where the model was trained.
        processes: how many processes trained it.
    """

    training: TrainingRecord
    seconds: float
    device: str
    processes: int


def required_epochs(cfg: dict[str, Any]) -> int:
    """``trainer.max_epochs`` of a run that trains.

    Raises:
        UserError: if it is null.
    """
    n_epochs: int | None = cfg["trainer"]["max_epochs"]
    if n_epochs is None:
        raise UserError("trainer.max_epochs must be a whole number of at least 1, found None")
    return n_epochs


def fit(
    cfg: dict[str, Any],
    module: TaskModule,
    data: pl.LightningDataModule,
    folder: RunFolder,
    budget: Budget,
    callbacks: list[Callback],
    **options: Any,
) -> Fit:
    """Train until patience or the budget ends the run, resuming from a saved state. Then load the best weights.

    Of several processes, all but the first exit here when training has ended.

    Args:
        cfg: the checked configuration.
        module: holds the model.
        data: read.
        folder: the state, the weights and the curves go to its partial folder.
        budget: how long.
        callbacks: besides those that every run has.
        options: of Lightning's trainer.

    Raises:
        UserError: if training diverges, the saved state cannot be used, or the machine cannot train as asked.
    """
    partial, decay = folder.partial, cfg["task"]["training"]["average"]
    average = None if decay is None else AverageWeights(decay)
    best = BestCheckpoint(partial / WEIGHTS, average)
    state = ResumeCheckpoint(partial / STATE, SAVED_EVERY, current_code())
    if cfg["force"] and (finished_row(folder.row) is None or not state.fits(module)):
        state.discard()  # but a finished run that is being made again is resumed like any other
    patience = Patience(cfg["trainer"]["patience"], best)
    own = [best, state, average, patience, ScoreDev(cfg["trainer"]["val_check_interval"], cfg["trainer"]["max_steps"])]
    logger = build_logger(cfg, partial, folder.run_id)
    try:
        chosen = [*(callback for callback in own if callback is not None), *callbacks]
        trainer = build_trainer(cfg, budget, logger, chosen, **options)
        state.fit(trainer, module, data)
        if not trainer.is_global_zero:
            sys.exit()  # the first process does all that is left
        seconds = best.seconds
        best.restore(module.model)
        log_best(logger, best)
    finally:
        close(logger)
    training = _training(budget, trainer, best, state, patience)
    return Fit(training, seconds, str(trainer.strategy.root_device), trainer.world_size)


def _training(
    budget: Budget, trainer: pl.Trainer, best: BestCheckpoint, state: ResumeCheckpoint, patience: Patience
) -> TrainingRecord:
    ended: Ended = "max_epochs"
    if patience.is_over:
        ended = "patience"
    elif budget.max_steps is not None and trainer.global_step >= budget.max_steps:
        ended = "max_steps"
    return TrainingRecord(
        epochs=best.curve[-1]["epoch"],
        best_epoch=best.best_epoch,
        max_epochs=budget.max_epochs,
        max_steps=budget.max_steps,
        ended=ended,
        converged=has_converged(
            ended,
            best_epoch=best.best_epoch,
            best_step=best.best_step,
            max_epochs=budget.max_epochs,
            max_steps=budget.max_steps,
        ),
        resumed_after=tuple(state.resumed_after),
        code=tuple(state.code),
        curve=tuple(map(curve_point, best.curve)),
    )


class HasCurve(Protocol):
    """A training whose scores are known."""

    curve: list[dict[str, Any]]
    best_step: int


def log_best(logger: Logger | bool, best: HasCurve) -> None:
    """Log the best dev scores, beside the curves."""
    if isinstance(logger, Logger):
        point = next(point for point in best.curve if point["step"] == best.best_step)
        logger.log_metrics({f"best/dev/{name}": value for name, value in point["dev"].items()}, step=best.best_step)


def close(logger: Logger | bool) -> None:
    """End a logger's run; without it the next run of a sweep in this process is logged into this one."""
    if not isinstance(logger, Logger):
        return
    logger.finalize("success")
    if isinstance(logger, WandbLogger):
        import wandb

        wandb.finish()
