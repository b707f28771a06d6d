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

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.store import Filled
from elmo_tasks.build import build_bilm, build_data, build_elmo, build_model, build_module, build_store, read_weights
from elmo_tasks.config import validate
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.errors import UserError
from elmo_tasks.metrics.base import Metric
from elmo_tasks.results import fingerprint, finished_row, write_json
from elmo_tasks.summary import print_summary
from elmo_tasks.train import (
    begin_row,
    describe_bilm,
    export,
    folder_of_run,
    identify,
    prepare_process,
)


@dataclass
class Member:
    """A finished run: its row, its model, and the data in the shape that the model was trained for."""

    row: dict[str, Any]
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
    start = time.perf_counter()
    bilm = build_bilm(cfg)
    splits = SPLITS[1:] if cfg["test"] else SPLITS[1:2]
    members, filled = gather(cfg, bilm, splits)
    run_id = name_of(cfg, members)
    path = Path(cfg["results"]["dir"]) / f"{run_id}.json"
    row = begin_row(cfg, run_id, members[0].row["bilm"])
    row["seed"] = None
    metric: Metric = build_module(cfg, members[0].model).metric
    after_layers = time.perf_counter()
    scores, files = {}, []
    for split in splits:
        scores[split] = score(members, metric, split)
        files += export(metric, path.with_suffix("") / split)
    row |= {
        "status": "finished",
        "data": members[0].row["data"],
        "metric": metric.name,
        "scores": scores,
        "files": files,
        "ensemble": {"seeds": cfg["ensemble"], "members": [member.row["run_id"] for member in members]},
        "elmo": {**members[0].row["elmo"], "weights": {}},
        "layers": asdict(filled),
        "parameters": sum(member.row["parameters"] for member in members),
        "seconds": {
            "layers": round(after_layers - start, 2),
            "score": round(time.perf_counter() - after_layers, 2),
        },
        "threads": torch.get_num_threads(),
    }
    write_json(path, row)
    print_summary(row, path)
    return float(scores["dev"][metric.name])


def gather(cfg: dict[str, Any], bilm: BiLM | None, splits: tuple[str, ...]) -> tuple[list[Member], Filled]:
    """The finished runs of ``cfg["ensemble"]``'s seeds, with layers for ``splits``."""
    members: list[Member] = []
    filled = Filled()
    used = None if bilm is None else describe_bilm(cfg, bilm)
    for seed in cfg["ensemble"]:
        own = {**cfg, "seed": seed, "ensemble": None}
        data = build_data(own)
        if not isinstance(data, TaskData):
            raise UserError(f"task={cfg['task']['name']} has no ensembles")
        run_id = identify(own, data.digest, used)
        row = finished_row(Path(cfg["results"]["dir"]) / f"{run_id}.json", needs_test=False)
        weights = folder_of_run(cfg, run_id) / "model.safetensors"
        if row is None:
            raise UserError(
                f"seed {seed} has no finished run {run_id} in {cfg['results']['dir']}; run seed={seed} first"
            )
        if not weights.is_file():
            raise UserError(f"{weights}: the weights of seed {seed} are gone; run it again with seed={seed} force=true")
        if members and cfg["data"]["fraction"] == 1:
            data = members[0].data  # a fraction of the training set has a vocabulary of its own
        else:
            data.read()
            filled = data.use_layers(build_store(cfg, bilm), splits)
        model = build_model(own, data, build_elmo(own, bilm))
        read_weights(model, weights)
        if not hasattr(model, "log_probabilities"):
            raise UserError(f"task={cfg['task']['name']} has no ensembles: its model gives no probabilities to average")
        members.append(Member(row, model.eval(), data))
    return members, filled


def name_of(cfg: dict[str, Any], members: list[Member]) -> str:
    """``task-slug-eN-digest``, for N members."""
    of_members = [member.row["run_id"] for member in members]
    head = f"{cfg['task']['name']}-{members[0].row['slug']}"
    return f"{head}-e{len(members)}-{fingerprint({'members': sorted(of_members)})}"


@torch.no_grad()
def score(members: list[Member], metric: Metric, split: str) -> dict[str, float]:
    """Scores of the members' mean."""
    metric.reset()
    first = members[0].model
    for batches in _in_step(members, split):
        together = mean(
            [
                member.model.log_probabilities(member.model(batch), batch)  # type: ignore[operator]
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
