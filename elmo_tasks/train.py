"""One run: configuration in, row out."""

from __future__ import annotations

import os
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from elmo_tasks.allocator import keep_large_blocks
from elmo_tasks.bilm import BiLM
from elmo_tasks.build import build_bilm, build_data, build_elmo, build_start, check_optimizer
from elmo_tasks.checkpoint import STATE
from elmo_tasks.config import validate
from elmo_tasks.data.wsd import WsdData
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.experiment import experiment
from elmo_tasks.identity import science, slug
from elmo_tasks.probes import wsd
from elmo_tasks.processes import count_processes
from elmo_tasks.progress import silence_lightning
from elmo_tasks.results import SCHEMA, fingerprint, finished_row, prepare_folder, provenance, write_json
from elmo_tasks.start import Start
from elmo_tasks.summary import print_summary


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
