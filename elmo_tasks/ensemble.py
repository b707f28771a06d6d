"""``python run.py task=snli ensemble=[1,2,3,4,5]``: finished runs that differ in their seed, averaged.

The members' probabilities of every possible answer (a label, a span) are averaged, and the answer that is best on
average is the prediction, as in tables 8 and 9 of the paper's supplement.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from torch import Tensor, nn

from elmo_tasks.bilm.store import Filled
from elmo_tasks.build import (
    build_bilm,
    build_data,
    build_elmo,
    build_model,
    build_module,
    build_store,
    can_vote,
    device_of,
    read_weights,
)
from elmo_tasks.config import validate
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.experiment import export
from elmo_tasks.metrics.base import Metric
from elmo_tasks.results import fingerprint, finished_row, write_json
from elmo_tasks.summary import print_summary
from elmo_tasks.train import begin_row, describe_bilm, folder_of_run, identify, prepare_process


@dataclass
class Member:
    """A finished run's model, and the data in the shape that the model was trained for."""

    model: nn.Module
    data: TaskData


def run(config: DictConfig) -> float:
    """Score the mean of finished runs on dev (and test, if ``test=true``), and write a row.

    Args:
        config: the composed configuration of the runs; ``ensemble`` lists their seeds.

    Returns:
        the ensemble's dev score.

    Raises:
        UserError: if a member has no finished row or its weights are gone, or if the task's model cannot vote.
    """
    cfg = validate(config)
    prepare_process(cfg)
    if not can_vote(cfg):
        raise UserError(f"task={cfg['task']['name']} has no ensembles: its model gives no probabilities to average")
    start = time.perf_counter()
    bilm = build_bilm(cfg)
    used = None if bilm is None else describe_bilm(cfg, bilm)
    of_members = [{**cfg, "seed": seed, "ensemble": None} for seed in sorted(cfg["ensemble"])]
    digest = build_data(cfg).digest
    rows = [finished(member, identify(member, digest, used)) for member in of_members]
    run_id = name_of(rows)
    path = Path(cfg["results"]["dir"]) / f"{run_id}.json"
    row = None if cfg["force"] else finished_row(path, needs_test=cfg["test"])
    if row is not None:
        print_summary(row, path, note="already there, nothing was run (force=true runs it again)")
        return float(row["scores"]["dev"][row["metric"]])
    splits = SPLITS[1:] if cfg["test"] else SPLITS[1:2]
    members, filled = gather(of_members, rows, bilm, splits)
    after_layers = time.perf_counter()
    metric: Metric = build_module(cfg, members[0].model).metric
    scores, files = {}, []
    for split in splits:
        scores[split] = score(members, metric, split)
        files += export(metric, path.with_suffix("") / split)
    row = {
        **begin_row(cfg, run_id, used),
        "status": "finished",
        "seed": None,
        "data": rows[0]["data"],
        "metric": metric.name,
        "scores": scores,
        "files": files,
        "ensemble": {"seeds": [row["seed"] for row in rows], "members": [row["run_id"] for row in rows]},
        "elmo": {**rows[0]["elmo"], "weights": {}},
        "layers": asdict(filled),
        "parameters": sum(row["parameters"] for row in rows),
        "seconds": {
            "layers": round(after_layers - start, 2),
            "score": round(time.perf_counter() - after_layers, 2),
        },
        "device": device_of(cfg),
        "threads": torch.get_num_threads(),
    }
    write_json(path, row)
    print_summary(row, path)
    return float(scores["dev"][metric.name])


def finished(cfg: dict[str, Any], run_id: str) -> dict[str, Any]:
    """The row of a member, whose weights must still be there."""
    row = finished_row(Path(cfg["results"]["dir"]) / f"{run_id}.json", needs_test=False)
    if row is None:
        raise UserError(
            f"seed {cfg['seed']} has no finished run {run_id} in {cfg['results']['dir']}; run seed={cfg['seed']} first"
        )
    weights = weights_of(cfg, run_id)
    if not weights.is_file():
        raise UserError(f"{weights}: the weights of this run are gone; run seed={cfg['seed']} again with force=true")
    return row


def weights_of(cfg: dict[str, Any], run_id: str) -> Path:
    """Where a run keeps its best weights."""
    return folder_of_run(cfg, run_id) / "model.safetensors"


def gather(
    of_members: list[dict[str, Any]], rows: list[dict[str, Any]], encoder: Encoder | None, splits: tuple[str, ...]
) -> tuple[list[Member], Filled]:
    """Load the members, with layers for ``splits``."""
    members: list[Member] = []
    filled = Filled()
    for cfg, row in zip(of_members, rows, strict=True):
        if members and cfg["data"]["fraction"] == 1:
            data = members[0].data  # but a fraction of the training set has a vocabulary of its own
        else:
            fresh = build_data(cfg)
            assert isinstance(fresh, TaskData)
            data = fresh
            data.read()
            own = data.use_layers(build_store(cfg, encoder), splits)
            filled = Filled(filled.computed + own.computed, max(filled.read, own.read))
        model = build_model(cfg, data, build_elmo(cfg, encoder))
        read_weights(model, weights_of(cfg, row["run_id"]))
        members.append(Member(model.to(device_of(cfg)).eval(), data))
    return members, filled


def name_of(rows: list[dict[str, Any]]) -> str:
    """``task-slug-eN-digest``, for N members."""
    digest = fingerprint({"members": [row["run_id"] for row in rows]})
    return f"{rows[0]['task']}-{rows[0]['slug']}-e{len(rows)}-{digest}"


@torch.no_grad()
def score(members: list[Member], metric: Metric, split: str) -> dict[str, float]:
    """Scores of the members' mean."""
    metric.reset()
    first = members[0].model
    device = next(first.parameters()).device
    for batches in _in_step(members, split):
        together = mean(
            [
                member.model.log_probabilities(member.model(batch.to(device)), batch)  # type: ignore[operator]
                for member, batch in zip(members, batches, strict=True)
            ]
        )
        metric.update(first.choose(together, batches[0]), batches[0].gold)  # type: ignore[operator]
    return metric.compute()


def mean(log_probabilities: list[Tensor]) -> Tensor:
    """Logarithm of the mean of some members' probabilities."""
    return torch.logsumexp(torch.stack(log_probabilities), dim=0) - math.log(len(log_probabilities))


def _in_step(members: list[Member], split: str) -> Iterator[list[Any]]:
    """The same items for every member at a time; members that share their data share the batch."""
    distinct = list({id(member.data): member.data for member in members}.values())
    places = [[data is member.data for data in distinct].index(True) for member in members]
    for batches in zip(*(data.batches(split) for data in distinct), strict=True):
        yield [batches[place] for place in places]
