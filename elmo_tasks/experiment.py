"""Read, train, choose by dev, score: the measured part of a row."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import Logger, WandbLogger

from elmo_tasks.bilm.store import Filled
from elmo_tasks.build import build_logger, build_model, build_module, build_store, build_trainer, softmax_epochs
from elmo_tasks.callbacks import KeepBest
from elmo_tasks.checkpoint import STATE, KeepState
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.elmo import Elmo
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.metrics.base import Exports, Metric
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.module import score
from elmo_tasks.results import write_text
from elmo_tasks.start import Start, write_bilm, write_vocabulary

SAVED_EVERY = 600.0
"""Seconds of a biLM's training that a kill may lose."""


def experiment(
    cfg: dict[str, Any],
    data: TaskData | LmData,
    encoder: Encoder | None,
    elmo: Elmo | None,
    start: Start | None,
    run_dir: Path,
    beside_row: Path,
) -> dict[str, Any]:
    """Read, train, choose by dev, score.

    Args:
        cfg: the checked configuration.
        data: not yet read.
        encoder: the frozen biLM, or the encoder in its place, if it takes part.
        elmo: its places, if the task has any.
        start: the weights that a biLM's training starts from, if any.
        run_dir: folder for the weights and the curve.
        beside_row: folder for predictions in a benchmark's official format.

    Returns:
        the measured part of the row.
    """
    began = time.perf_counter()
    pl.seed_everything(cfg["seed"], workers=True, verbose=False)  # here, so that baseline and ELMo start alike
    data.read()
    splits = SPLITS if cfg["test"] else SPLITS[:2]
    filled = data.use_layers(build_store(cfg, encoder), splits) if isinstance(data, TaskData) else Filled()
    after_layers = time.perf_counter()
    module = build_module(cfg, build_model(cfg, data, elmo, start))
    model, metric = module.model, module.metric
    best = KeepBest(run_dir / "model.safetensors")
    state = KeepState(run_dir / STATE, SAVED_EVERY if isinstance(data, LmData) else None)
    if cfg["force"]:
        state.discard()
    logger = build_logger(cfg, run_dir, run_dir.name)
    try:
        trainer = build_trainer(cfg, module, data, logger, [best, state], start)
        if isinstance(data, LmData) and trainer.is_global_zero:
            write_vocabulary(data.vocabulary, run_dir / "bilm")  # now, for who starts from what a kill leaves
        state.fit(trainer, module, data)
        if not trainer.is_global_zero:
            sys.exit()  # the first process has all that is left to do
        of_fit, after_fit = best.seconds, time.perf_counter()
        best.restore(model)
        scores, files = {}, []
        for split in splits[1:]:
            scores[split] = score(model, metric, data.batches(split))
            files += export(metric, beside_row / split)
        log_final(logger, scores)
    finally:
        close(logger)
    exported, before = None, None
    if isinstance(model, LanguageModel):
        exported = {"folder": str(run_dir / "bilm"), "digest": write_bilm(model, run_dir / "bilm")}
        before = next((p["dev"] for p in reversed(best.curve) if p["epoch"] <= softmax_epochs(cfg, start)), None)
    return {
        "data": {"name": cfg["data"]["name"], "digest": data.digest, **data.counts()},
        "metric": metric.name,
        "scores": scores,
        "files": files,
        "before": before,
        "exported": exported,
        "resumed_after": state.resumed_after,
        "epochs": best.curve[-1]["epoch"],
        "best_epoch": best.best_epoch,
        "curve": best.curve,
        "elmo": None
        if elmo is None
        else {"placement": cfg["elmo"]["placement"], "mix": cfg["elmo"]["mix"], "weights": elmo.weights()},
        "layers": asdict(filled),
        "parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "seconds": {
            "layers": round(after_layers - began, 2),
            "fit": round(of_fit, 2),
            "score": round(time.perf_counter() - after_fit, 2),
        },
        "device": str(trainer.strategy.root_device),
        "processes": trainer.world_size,
        "threads": torch.get_num_threads(),
    }


def export(metric: Metric, folder: Path) -> list[str]:
    """Write what the benchmark's official scorer reads, if there is one; the paths below the rows' folder."""
    contents = metric.files() if isinstance(metric, Exports) else {}
    for name, content in contents.items():
        write_text(folder / name, content)
    return [f"{folder.parent.name}/{folder.name}/{name}" for name in contents]


def log_final(logger: Logger | bool, scores: dict[str, dict[str, float]]) -> None:
    """The scores of the chosen checkpoint, beside the curves."""
    if isinstance(logger, Logger):
        logger.log_metrics({f"best/{split}/{name}": v for split, part in scores.items() for name, v in part.items()})


def close(logger: Logger | bool) -> None:
    """End a logger's run; without it the next run of a sweep in this process is logged into this one."""
    if not isinstance(logger, Logger):
        return
    logger.finalize("success")
    if isinstance(logger, WandbLogger):
        import wandb

        wandb.finish()
