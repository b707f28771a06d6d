"""Lightning's trainer and its logger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback, EarlyStopping, TQDMProgressBar
from pytorch_lightning.loggers import CSVLogger, Logger

from elmo_tasks.build.model import softmax_epochs
from elmo_tasks.callbacks import AverageWeights, ScoreDev, SoftmaxFirst
from elmo_tasks.checkpoint import TensorsAndJson
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.module import TaskData
from elmo_tasks.errors import UserError
from elmo_tasks.module import TaskModule
from elmo_tasks.processes import count_processes, devices_of
from elmo_tasks.progress import TokensASecond
from elmo_tasks.start import Start


def build_trainer(
    cfg: dict[str, Any],
    module: TaskModule,
    data: TaskData | LmData,
    logger: Logger | bool,
    callbacks: list[Callback],
    start: Start | None = None,
) -> pl.Trainer:
    """Lightning's trainer with this project's habits: no banners, own checkpoints, own curves."""
    trainer, metric = cfg["trainer"], module.metric
    text = data if isinstance(data, LmData) else None
    callbacks = [*callbacks, ScoreDev(trainer["val_check_interval"], trainer["max_steps"])]
    n_softmax_epochs = softmax_epochs(cfg, start)
    if n_softmax_epochs:
        callbacks = [*callbacks, SoftmaxFirst(n_softmax_epochs)]
    if cfg["task"]["training"]["average"] is not None:
        callbacks = [*callbacks, AverageWeights(cfg["task"]["training"]["average"])]  # behind the one that saves
    if trainer["progress"]:
        usual = TQDMProgressBar(leave=False)
        bar = TokensASecond(text.batch_size * text.window, trainer["max_steps"]) if text else usual
        callbacks = [*callbacks, bar]
    if trainer["patience"] is not None:
        mode = "max" if metric.higher_is_better else "min"
        stopping = EarlyStopping(
            f"dev/{metric.name}",
            patience=trainer["patience"],
            mode=mode,
            check_on_train_epoch_end=trainer["val_check_interval"] is None,
        )
        callbacks = [*callbacks, stopping]
    return pl.Trainer(
        **devices_of(cfg),
        strategy="ddp_find_unused_parameters_true" if n_softmax_epochs and count_processes(cfg).n > 1 else "auto",
        precision=trainer["precision"],
        max_epochs=n_softmax_epochs + trainer["max_epochs"],
        limit_train_batches=text.steps_per_epoch if text else 1.0,
        reload_dataloaders_every_n_epochs=0 if text else 1,
        limit_val_batches=_dev_batches(trainer["limit_val_batches"], data),
        gradient_clip_val=cfg["task"]["training"]["grad_norm"],
        logger=logger,
        callbacks=callbacks,
        enable_progress_bar=trainer["progress"],
        plugins=[TensorsAndJson()],
        enable_checkpointing=True,  # by KeepState
        enable_model_summary=False,
        num_sanity_val_steps=0 if start is None else -1,  # a start is scored before it is trained further
        log_every_n_steps=10,
        inference_mode=True,
    )


def _dev_batches(limit: float, data: TaskData | LmData) -> float:
    """``trainer.limit_val_batches``, a share of a task's dev batches as their number, one at least."""
    is_share = isinstance(data, TaskData) and isinstance(limit, float) and limit < 1
    return max(1, int(limit * len(data.batches("dev")))) if is_share else limit


def build_logger(cfg: dict[str, Any], run_dir: Path, run_id: str) -> Logger | bool:
    """Curves to a CSV file, to W&B, or nowhere."""
    name = cfg["logger"]["name"]
    if name == "none":
        return False
    run_dir.mkdir(parents=True, exist_ok=True)
    if name == "csv":
        return CSVLogger(str(run_dir), name="", version="")
    try:
        import wandb  # noqa: F401
    except ImportError as error:
        raise UserError("logger=wandb needs the extra `wandb`: pip install -e '.[wandb]'; or use logger=csv") from error
    from pytorch_lightning.loggers import WandbLogger

    os.environ.setdefault("WANDB_SILENT", "true")
    elmo = cfg["elmo"]
    tags = [cfg["task"]["name"], cfg["data"]["name"], cfg["scale"]["name"], f"placement={elmo['placement']}"]
    if elmo["placement"] != "none":
        tags += [f"mix={elmo['mix']}", f"lambda={elmo['lambda']:g}", f"bilm={cfg['bilm']['name']}"]
    tags += cfg["logger"]["tags"]
    return WandbLogger(
        project=cfg["logger"]["project"],
        offline=cfg["logger"]["offline"],
        save_dir=str(run_dir),
        name=run_id,
        group=f"{cfg['task']['name']}-{cfg['data']['name']}-{cfg['scale']['name']}",
        tags=tags,
        config=cfg,
    )
