"""One run: configuration in, row out."""

from __future__ import annotations

import os
import sys
import time
import traceback
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from omegaconf import DictConfig
from pytorch_lightning.loggers import Logger, WandbLogger

from elmo_tasks.allocator import keep_large_blocks
from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.store import Filled
from elmo_tasks.build import (
    build_bilm,
    build_data,
    build_elmo,
    build_logger,
    build_model,
    build_module,
    build_start,
    build_store,
    build_trainer,
    check_optimizer,
    softmax_epochs,
)
from elmo_tasks.callbacks import KeepBest, silence_lightning
from elmo_tasks.checkpoint import STATE, KeepState
from elmo_tasks.config import science, slug, validate
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.data.wsd import WsdData
from elmo_tasks.elmo import Elmo
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.base import Exports, Metric
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.module import score
from elmo_tasks.probes import wsd
from elmo_tasks.processes import count_processes
from elmo_tasks.results import (
    SCHEMA,
    fingerprint,
    finished_row,
    prepare_folder,
    provenance,
    write_json,
    write_text,
)
from elmo_tasks.start import Start, write_bilm, write_vocabulary
from elmo_tasks.summary import print_summary

SAVED_EVERY = 600.0
"""Seconds of a biLM's training that a kill may lose."""


def run(config: DictConfig) -> float:
    """Train one model, score it, write its row; a run that has a finished row is not repeated.

    Args:
        config: the composed Hydra configuration.

    Returns:
        the dev score that chose the checkpoint.

    Raises:
        UserError: for whatever the user can mend.
    """
    cfg = validate(config)
    check_optimizer(cfg)
    prepare_process(cfg)
    processes = count_processes(cfg)
    bilm = build_bilm(cfg)
    elmo = build_elmo(cfg, bilm)
    start = build_start(cfg)
    data = build_data(cfg, start)
    used = None if bilm is None else describe_bilm(cfg, bilm)
    begun = None if start is None else describe_start(cfg, start)
    run_id = identify(cfg, data.digest, used, begun)
    path = Path(cfg["results"]["dir"]) / f"{run_id}.json"
    row = None if cfg["force"] else finished_row(path, needs_test=cfg["test"])
    if row is not None:
        print_summary(row, path, note="already there, nothing was run (force=true runs it again)")
        return float(row["scores"]["dev"][row["metric"]])
    prepare_folder(path.parent)
    row = begin_row(cfg, run_id, used) | {"start": begun}
    try:
        if isinstance(data, WsdData):
            assert elmo is not None
            row |= wsd.experiment(cfg, data, bilm, elmo)
        else:
            row |= experiment(cfg, data, bilm, elmo, start, folder_of_run(cfg, run_id), path.with_suffix(""))
        row["status"] = "finished"
    except UserError as error:  # bad input is not a result
        raise error if processes.rank == 0 else UserError(f"process {processes.rank}: {error}") from None
    except Exception as error:
        if processes.rank == 0:
            write_json(path, row | {"error": "".join(traceback.format_exception_only(error)).strip()})
        raise
    write_json(path, row)
    (folder_of_run(cfg, run_id) / STATE).unlink(missing_ok=True)  # only now is nothing left to be taken up
    print_summary(row, path)
    return float(row["scores"]["dev"][row["metric"]])


def prepare_process(cfg: dict[str, Any]) -> None:
    """Settings of the process that a run needs: threads, memory, a quiet Lightning."""
    silence_lightning()
    keep_large_blocks()
    threads = cfg["trainer"]["threads"]
    if threads is not None:
        torch.set_num_threads(threads)
        os.environ["OMP_NUM_THREADS"] = str(threads)  # of the processes that Lightning starts


def begin_row(cfg: dict[str, Any], run_id: str, bilm: dict[str, Any] | None) -> dict[str, Any]:
    """What a row says before there is a result."""
    return {
        "schema": SCHEMA,
        "status": "failed",
        "run_id": run_id,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "task": cfg["task"]["name"],
        "slug": slug(cfg),
        "seed": cfg["seed"],
        "scale": cfg["scale"]["name"],
        "bilm": bilm,
        **provenance(),
        "config": cfg,
    }


def identify(
    cfg: dict[str, Any], data_digest: str, bilm: dict[str, Any] | None, start: dict[str, Any] | None = None
) -> str:
    """The name of a run: readable, and another one for everything that can change a score."""
    begun = {} if start is None else {"start": start["digest"]}
    digest = fingerprint(science(cfg, {"data_digest": data_digest, "bilm": bilm, **begun}))
    return f"{cfg['task']['name']}-{slug(cfg)}-s{cfg['seed']}-{digest}"


def folder_of_run(cfg: dict[str, Any], run_id: str) -> Path:
    """Where a run keeps its weights and its curve."""
    return Path(cfg["paths"]["outputs"]) / "runs" / run_id


def describe_bilm(cfg: dict[str, Any], encoder: Encoder) -> dict[str, Any]:
    """What of the biLM, or of the encoder in its place, can change a score."""
    part = {"name": cfg["bilm"]["name"], "digest": encoder.digest, "state": cfg["bilm"]["state"]}
    warm = encoder.warm_digest if isinstance(encoder, BiLM) else None
    return part | {"dtype": cfg["bilm"]["store"]["dtype"], "warm": warm}


def describe_start(cfg: dict[str, Any], start: Start) -> dict[str, Any]:
    """What a biLM's training starts from."""
    return {
        "init": cfg["task"]["lm"]["init"],
        "digest": start.digest,
        "softmax": "restored" if start.vocabulary is not None else "new",
    }


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
