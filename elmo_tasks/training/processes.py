"""A model trained by several processes: how many there are, which one this is, and what cannot be shared."""

from __future__ import annotations

from typing import Any, NamedTuple

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning_fabric import Fabric
from lightning_fabric.utilities.exceptions import MisconfigurationException

from elmo_tasks.errors import UserError, shortened
from elmo_tasks.processor import device_for
from elmo_tasks.training.cluster import make_fabric, make_trainer


def device_settings(cfg: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a trainer that choose its devices."""
    trainer = cfg["trainer"]
    accelerator = device_for("auto") if trainer["accelerator"] == "auto" else trainer["accelerator"]
    return {"accelerator": accelerator, "devices": trainer["devices"], "num_nodes": trainer["num_nodes"]}


class Processes(NamedTuple):
    """How many processes train together, and which of them this is."""

    n: int
    rank: int


def count_processes(cfg: dict[str, Any]) -> Processes:
    """The processes that ``trainer.devices`` and ``trainer.num_nodes`` ask for, as Lightning counts them.

    Raises:
        UserError: if the machine does not have them.
    """
    if cfg["trainer"]["devices"] == cfg["trainer"]["num_nodes"] == 1:
        return Processes(1, 0)
    try:
        trainer = make_trainer(
            **device_settings(cfg), logger=False, enable_progress_bar=False, enable_checkpointing=False
        )
    except (MisconfigurationException, RuntimeError, TypeError, ValueError) as error:
        asked = f"trainer.devices={cfg['trainer']['devices']} with trainer.accelerator={cfg['trainer']['accelerator']}"
        raise UserError(f"{asked}: {shortened(str(error), 200)}") from error
    return Processes(trainer.world_size, trainer.global_rank)


def start_processes(cfg: dict[str, Any]) -> Fabric:
    """Start the other processes of a run, if this is the first one, and join them; says which device is this one's.

    Raises:
        UserError: if the machine cannot train as asked.
    """
    asked = device_settings(cfg)
    try:
        fabric = make_fabric(**asked)
        fabric.launch()
    except (MisconfigurationException, RuntimeError, TypeError, ValueError) as error:
        settings = ", ".join(f"trainer.{key}={value}" for key, value in asked.items())
        raise UserError(f"{settings}: not possible on this machine ({shortened(str(error), 160)})") from error
    return fabric


def require_one_process(cfg: dict[str, Any]) -> None:
    """Check that a run asks for one process.

    Raises:
        UserError: if it asks for several.
    """
    if count_processes(cfg).n > 1:
        raise UserError(
            f"trainer.devices={cfg['trainer']['devices']}: task={cfg['task']['name']} runs on one device only"
        )


def share_items(cfg: dict[str, Any], *, documents: bool) -> Processes:
    """The processes that share the items of a supervised task's batches.

    Args:
        cfg: the checked configuration.
        documents: whether a batch is one document, which cannot be shared.

    Raises:
        UserError: as :func:`count_processes`, if the batches cannot be shared, and if the run is one of a sweep.
    """
    processes, asked = count_processes(cfg), f"trainer.devices={cfg['trainer']['devices']}"
    if processes.n == 1:
        return processes
    _refuse_sweep(asked)
    if documents:
        raise UserError(
            f"{asked}: a batch of task={cfg['task']['name']} is one document, which several devices cannot share; "
            "run its seeds side by side"
        )
    if cfg["elmo"]["layer_norm"] and cfg["elmo"]["placement"] != "none":
        raise UserError(
            f"{asked}: elmo.layer_norm=true normalises over a whole batch, but a device would see only its own rows; "
            "train on one device, or set elmo.layer_norm=false"
        )
    return processes


def share_batch(cfg: dict[str, Any], batch_size: int) -> Processes:
    """The processes that share the rows of a batch.

    Raises:
        UserError: as :func:`count_processes`, if the rows cannot be shared evenly, and if the run is one of a sweep.
    """
    processes, asked = count_processes(cfg), f"trainer.devices={cfg['trainer']['devices']}"
    if processes.n == 1:
        return processes
    _refuse_sweep(asked)
    if batch_size % processes.n:
        raise UserError(
            f"{asked}: task.data.batch_size={batch_size} rows cannot be shared evenly by {processes.n} processes; "
            f"set a multiple of {processes.n}"
        )
    return processes


def _refuse_sweep(asked: str) -> None:
    if HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN:
        raise UserError(f"{asked}: the runs of a sweep (-m) train on one device each; start these one by one")
