"""``python run.py task=snli ensemble=[1,2,3,4,5]``: finished runs that differ in their seed, averaged.

The members' probabilities of every possible answer (a label, a span) are averaged, and the answer that is best on
average is the prediction, as in tables 8 and 9 of the paper's supplement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.assembly import (
    build_bilm,
    build_data,
    build_elmo,
    build_model,
    build_store,
    choose_device,
    make,
    read_weights,
)
from elmo_tasks.config.components import find_class
from elmo_tasks.config.identity import RunDigests, run_id, short_digest, slug
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.files import sha256
from elmo_tasks.lock import owned
from elmo_tasks.metrics.base import Metric
from elmo_tasks.models.base import Probabilistic, TaskModel
from elmo_tasks.rows import kinds
from elmo_tasks.rows.fields import Kind
from elmo_tasks.rows.io import finished_row
from elmo_tasks.rows.schema import EnsembleRow, Header, Row
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.inputs import describe_bilm, words_digest
from elmo_tasks.runs.layout import FITTED, WEIGHTS
from elmo_tasks.runs.saved import read_fitted
from elmo_tasks.runs.scoring import Stopwatch, describe_elmo, describe_layers, describe_work, score_splits
from elmo_tasks.store.store import Filled


@dataclass
class Member:
    """A finished run's model, and the data in the shape that the model was trained for."""

    model: TaskModel
    data: TaskData


class EnsembleRun:
    """See :class:`elmo_tasks.runs.interface.Run`."""

    kind: Kind = "ensemble"
    rank = 0
    seed: int | None = None

    def __init__(self, cfg: dict[str, Any]) -> None:
        if not is_probabilistic(cfg):
            raise UserError(f"task={cfg['task']['name']} has no ensembles: its model gives no probabilities to average")
        self.cfg = cfg
        self.encoder = build_bilm(cfg)
        data = build_data(cfg)
        self.inputs = RunDigests(data.digest, data.test_digest, describe_bilm(cfg, self.encoder), words_digest(cfg))
        self.configs = [{**cfg, "seed": seed, "ensemble": None} for seed in sorted(cfg["ensemble"])]
        self.folders = [member_folder(member, run_id(member, "supervised", self.inputs)) for member in self.configs]
        self.rows = [finished_member(member, folder) for member, folder in zip(self.configs, self.folders, strict=True)]
        members = [[row.run_id, row.weights] for row in self.rows]
        self.slug = slug(cfg, self.kind)
        self.run_id = f"{cfg['task']['name']}-{self.slug}-e{len(members)}-{short_digest({'members': members})}"

    def measure(self, folder: RunFolder, header: Header, finished: Row | None) -> Row:
        """Score the mean of the members on dev (and test)."""
        splits, watch = SPLITS[1:] if self.cfg["test"] else SPLITS[1:2], Stopwatch()
        for each, row in zip(self.folders, self.rows, strict=True):
            each.check_weights(row)
        with watch("layers"):
            members, filled = load_members(self.configs, [each.final for each in self.folders], self.encoder, splits)
        metric: Metric = make(self.cfg["task"]["metric"], self.cfg["packages"])
        with watch("score"):
            scores, files = score_splits(
                splits, metric, folder, finished is not None, lambda split: score_mean(members, metric, split)
            )
        return EnsembleRow(
            **vars(header),
            **describe_work(self.cfg, metric, watch),
            data=replace(self.rows[0].data, test_digest=self.inputs.test if self.cfg["test"] else None),
            scores=scores,
            files=files,
            weights=None,
            parameters=sum(row.parameters for row in self.rows),
            elmo=describe_elmo(self.cfg),
            layers=describe_layers(filled),
            ensemble=kinds.Ensemble(members=tuple(map(describe_member, self.rows))),
        )


def is_probabilistic(cfg: dict[str, Any]) -> bool:
    """Whether the task's model can be a member of an ensemble."""
    model = cfg["task"].get("model")
    found = None if model is None else find_class("task.model._target_", model["_target_"], cfg["packages"])
    return isinstance(found, type) and issubclass(found, Probabilistic)


def member_folder(cfg: dict[str, Any], run_id: str) -> RunFolder:
    """Where a member's files are."""
    return RunFolder(Path(cfg["paths"]["outputs"]), Path(cfg["results"]["dir"]), run_id)


def finished_member(cfg: dict[str, Any], folder: RunFolder) -> Row:
    """The row of a member, whose weights must still exist.

    Raises:
        UserError: if the member has no finished run, or its weights are missing or differ.
    """
    if folder.pending:  # its process was killed after it had finished
        with owned(folder.lock, wait=True):
            folder.settle()
    row = finished_row(folder.row)
    if row is None:
        seed, run_id = cfg["seed"], folder.run_id
        raise UserError(f"seed {seed} has no finished run {run_id} in {folder.rows}; run seed={seed} first")
    folder.check_weights(row)
    return row


def describe_member(row: Row) -> kinds.MemberRecord:
    """A member, as the ensemble's row has it."""
    assert row.seed is not None
    return kinds.MemberRecord(run_id=row.run_id, seed=row.seed, weights=row.weights)


def load_members(
    configs: Sequence[dict[str, Any]], folders: Sequence[Path], encoder: Encoder | None, splits: tuple[str, ...]
) -> tuple[list[Member], Filled]:
    """Load the members, with layers for ``splits``; those that have one vocabulary share their data."""
    members: list[Member] = []
    filled = Filled()
    read: dict[str, TaskData] = {}
    for cfg, folder in zip(configs, folders, strict=True):
        vocabulary = sha256(folder / FITTED)
        if vocabulary not in read:
            data = build_data(cfg)
            data.read()
            data.fitted = read_fitted(data.reader, folder / FITTED)
            carried = cfg["bilm"]["state"] == "carry"  # dev is read after train, as by the members
            own = data.use_layers(build_store(cfg, encoder), ("train", *splits) if carried else splits)
            filled = Filled(filled.computed + own.computed, max(filled.read, own.read))
            read[vocabulary] = data
        data = read[vocabulary]
        model = build_model(cfg, data, build_elmo(cfg, encoder))
        read_weights(model, folder / WEIGHTS)
        members.append(Member(model.to(choose_device(cfg)).eval(), data))
    for data in read.values() if "test" in splits else ():
        data.add_words("test", [member.model for member in members if member.data is data])
    return members, filled


@torch.no_grad()
def score_mean(members: list[Member], metric: Metric, split: str) -> dict[str, float]:
    """Scores of the members' mean."""
    metric.reset()
    first = members[0].model
    assert isinstance(first, Probabilistic)
    device = next(members[0].model.parameters()).device
    for batches in _in_step(members, split):
        log_probabilities = mean_log_probabilities(
            [
                member.model.log_probabilities(member.model(batch.to(device)), batch)
                for member, batch in zip(members, batches, strict=True)
                if isinstance(member.model, Probabilistic)
            ]
        )
        metric.update(first.choose(log_probabilities, batches[0]), batches[0].gold)
    return metric.compute()


def mean_log_probabilities(log_probabilities: list[Tensor]) -> Tensor:
    """Logarithm of the mean of some members' probabilities: ``[B, ...]`` each, to the same shape."""
    return torch.logsumexp(torch.stack(log_probabilities), dim=0) - math.log(len(log_probabilities))


def _in_step(members: list[Member], split: str) -> Iterator[list[Any]]:
    """The batches of all members, with the same items; members that share their data share the batch."""
    distinct = list({id(member.data): member.data for member in members}.values())
    numbers = [[data is member.data for data in distinct].index(True) for member in members]
    for batches in zip(*(data.batches(split) for data in distinct), strict=True):
        yield [batches[number] for number in numbers]
