"""One biLM trained by several processes: how many there are, which one this is, and what cannot be split."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning_fabric.utilities.exceptions import MisconfigurationException

from elmo_tasks.errors import UserError


def devices_of(cfg: dict[str, Any]) -> dict[str, Any]:
    """Where a trainer runs."""
    return {key: cfg["trainer"][key] for key in ("accelerator", "devices", "num_nodes")}


class Processes(NamedTuple):
    """How many processes train together, and which of them this is."""

    n: int
    rank: int


def count_processes(cfg: dict[str, Any]) -> Processes:
    """The processes that ``trainer.devices`` and ``trainer.num_nodes`` ask for, as Lightning counts them.

    Raises:
        UserError: if the machine has not got them, or if the task cannot be split over them.
    """
    if cfg["trainer"]["devices"] == cfg["trainer"]["num_nodes"] == 1:
        return Processes(1, 0)
    task, asked = cfg["task"], f"trainer.devices={cfg['trainer']['devices']}"
    try:
        trainer = pl.Trainer(**devices_of(cfg), logger=False, enable_progress_bar=False, enable_checkpointing=False)
    except (MisconfigurationException, TypeError, ValueError) as error:
        raise UserError(f"{asked} with trainer.accelerator={cfg['trainer']['accelerator']}: {error}") from error
    processes = Processes(trainer.world_size, trainer.global_rank)
    if processes.n == 1:
        return processes
    if "lm" not in task:
        raise UserError(
            f"{asked}: task={task['name']} trains on one device, only task=lm on several; run its seeds side by side"
        )
    if HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN:
        raise UserError(f"{asked}: the runs of a sweep (-m) train on one device each; start these one by one")
    if task["data"]["batch_size"] % processes.n:
        raise UserError(
            f"{asked}: task.data.batch_size={task['data']['batch_size']} rows cannot be shared evenly by "
            f"{processes.n} processes; set a multiple of {processes.n}"
        )
    return processes
