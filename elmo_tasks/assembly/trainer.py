"""Lightning's module, trainer and logger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import Logger

from elmo_tasks.config.components import make
from elmo_tasks.config.identity import setting_key
from elmo_tasks.errors import UserError, shortened
from elmo_tasks.models.base import TaskModel
from elmo_tasks.processor import device_for, has_gpu, has_instructions
from elmo_tasks.render.wandb import SETTING
from elmo_tasks.training.budget import Budget
from elmo_tasks.training.checkpoint import STATE
from elmo_tasks.training.cluster import make_trainer
from elmo_tasks.training.curves import Curves
from elmo_tasks.training.distributed_module import DistributedTaskModule
from elmo_tasks.training.module import TaskModule
from elmo_tasks.training.processes import device_settings
from elmo_tasks.training.state_file import TensorsAndJson

_WANDB_OFFLINE = ("offline", "dryrun")
"""What ``WANDB_MODE`` can be for offline runs."""


def check_machine(cfg: dict[str, Any]) -> None:
    """Check that the machine can train as asked, before data are read and layers computed.

    Raises:
        UserError: if a GPU is asked for and there is none, for bfloat16 if the processor has no instructions for it, or
            if curves are to be sent to W&B without a key.
    """
    accelerator, precision = cfg["trainer"]["accelerator"], cfg["trainer"]["precision"]
    if accelerator == "gpu" and not has_gpu():
        raise UserError(
            "trainer.accelerator=gpu is not possible on this machine: PyTorch finds no GPU; set trainer.accelerator=cpu"
        )
    if precision == "bf16-mixed" and device_for(accelerator) == "cpu" and not has_instructions("bfloat16"):
        raise UserError(
            "trainer.precision=bf16-mixed: this processor has no bfloat16 instructions, so training would be many "
            "times slower than in float32; set trainer.precision=32-true"
        )
    if cfg["logger"]["name"] == "wandb" and not cfg["logger"]["offline"]:
        _check_wandb_login()


def _check_wandb_login() -> None:
    """Check that curves can be sent to W&B; in a terminal W&B asks for the key that is missing.

    Raises:
        UserError: if not.
    """
    import wandb

    if os.environ.get("WANDB_MODE") in (*_WANDB_OFFLINE, "disabled"):
        return
    try:
        wandb.login()
    except wandb.errors.Error as error:
        reason = shortened(str(error).splitlines()[0], 120)
        raise UserError(
            f"logger.offline=false: W&B has no key ({reason}); run `wandb login`, or set logger.offline=true"
        ) from error


def build_module(cfg: dict[str, Any], model: TaskModel, *, distributed: bool = False) -> TaskModule:
    """The training loop body of a task model, with its metric and its optimizer, for one process or several."""
    kind = DistributedTaskModule if distributed else TaskModule
    return kind(
        model=model,
        metric=make(cfg["task"]["metric"], cfg["packages"]),
        optimizer=make(cfg["task"]["optimizer"], cfg["packages"]),
        schedule=cfg["task"]["training"]["schedule"],
        max_steps=cfg["trainer"]["max_steps"],
    )


def build_trainer(
    cfg: dict[str, Any], budget: Budget, logger: Logger | bool, callbacks: list[Callback], **options: Any
) -> pl.Trainer:
    """Lightning's trainer with the settings of this project: no banners, own checkpoints, own curves.

    Raises:
        UserError: if Lightning refuses the settings, such as a GPU where there is none.
    """
    trainer = cfg["trainer"]
    asked = {**device_settings(cfg), "precision": trainer["precision"]}
    defaults = {
        "max_epochs": budget.max_epochs,
        "reload_dataloaders_every_n_epochs": 1,
        "limit_val_batches": budget.dev_batches,
        "gradient_clip_val": cfg["task"]["training"]["grad_norm"],
        "logger": logger,
        "callbacks": callbacks,
        "enable_progress_bar": trainer["progress"],
        "plugins": [TensorsAndJson()],
        "enable_checkpointing": True,  # by ResumeCheckpoint
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
        "log_every_n_steps": 10,
        "inference_mode": True,
        "use_distributed_sampler": False,  # the data modules share the batches themselves
    }
    try:
        return make_trainer(**{**defaults, **asked, **options})
    except (MisconfigurationException, RuntimeError, TypeError, ValueError) as error:
        settings = ", ".join(f"trainer.{key}={value}" for key, value in asked.items())
        raise UserError(f"{settings}: not possible on this machine ({shortened(str(error), 160)})") from error


def build_logger(cfg: dict[str, Any], folder: Path, run_id: str) -> Logger | bool:
    """Curves to a CSV file, to TensorBoard, to W&B, or nowhere."""
    name = cfg["logger"]["name"]
    if name == "none":
        return False
    if name == "csv":
        return Curves(folder)
    if name == "tensorboard":
        return _tensorboard(folder)
    return _wandb(cfg, folder, run_id)


def _tensorboard(folder: Path) -> Logger:
    from pytorch_lightning.loggers import TensorBoardLogger

    try:
        return TensorBoardLogger(str(folder), name="tensorboard", version="")
    except ModuleNotFoundError as error:
        raise UserError(
            "logger=tensorboard needs the extra `tensorboard`: pip install -e '.[tensorboard]'; or use logger=csv"
        ) from error


def _wandb(cfg: dict[str, Any], folder: Path, run_id: str) -> Logger | bool:
    """W&B's logger; none where the user has disabled W&B."""
    from elmo_tasks.training.wandb_curves import WandbCurves  # W&B takes a second to import

    mode = os.environ.get("WANDB_MODE")
    if mode == "disabled":
        return False
    os.environ.setdefault("WANDB_SILENT", "true")
    return WandbCurves(
        project=cfg["logger"]["project"],
        mode="offline" if cfg["logger"]["offline"] or mode in _WANDB_OFFLINE else "online",
        save_dir=str(folder),
        id=_interrupted_wandb_id(folder),
        name=run_id,
        group=f"{cfg['task']['name']}-{cfg['data']['name']}-{cfg['scale']['name']}",
        tags=_tags(cfg),
        config={**cfg, SETTING: setting_key(cfg, cfg["task"]["kind"])},
    )


def _interrupted_wandb_id(folder: Path) -> str | None:
    """The W&B ID of the run that is resumed, so that its curves are continued; None for a run from its beginning."""
    if not (folder / STATE).exists():
        return None
    # such as offline-run-20180601_120000-ab12cd34; run-... if it was online
    parts = [path.name.removeprefix("offline-").split("-", 2) for path in folder.glob("wandb/*run-*-*")]
    return max(parts)[2] if parts else None


def _tags(cfg: dict[str, Any]) -> list[str]:
    elmo = cfg["elmo"]
    tags = [cfg["task"]["name"], cfg["data"]["name"], cfg["scale"]["name"], f"placement={elmo['placement']}"]
    if elmo["placement"] != "none":
        tags += [f"mix={elmo['mix']}", f"lambda={elmo['lambda']:g}", f"bilm={cfg['bilm']['name']}"]
    return [*tags, *cfg["logger"]["tags"]]
