"""The plan of a supervised run: what there is to compute, what it takes, and whether it fits."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.assembly import build_model, build_module, build_store, choose_device
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.elmo import Elmo
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.planning.memory import available_bytes
from elmo_tasks.planning.probe import StepCost, distinct_words, reading_rate, step_cost
from elmo_tasks.planning.stand_in import stand_in
from elmo_tasks.store.shards import size
from elmo_tasks.store.store import LayerStore, Store

_WRITTEN_BESIDE = 6
"""Bytes that a run writes for weights and the state of training, as a multiple of the weights' own."""

_SHARD_COPIES = 3.5
"""Memory while a shard is computed, as a multiple of its layers in float32 (measured)."""


_HEAP_GROWTH = 2
"""Memory of training after batches of many shapes, as a multiple of what the largest one takes (measured)."""


@dataclass(frozen=True)
class Layers:
    """What of an encoder's layers a run needs.

    Attributes:
        n_tokens: of all distinct sentences; ``n_words``: distinct words of them.
        bytes_kept: what the store holds in the end, by ``bilm.store.keep``; of other encoders than a biLM, ``layers``.
        keep: which of the two is asked for.
        n_missing: tokens (or words) that are not stored yet.
        bytes_missing: that they will take; ``bytes_free``: of the disk.
        seconds: that the encoder needs for them.
        fill_bytes: of memory, while a shard is computed.
    """

    n_tokens: int
    n_words: int
    bytes_kept: dict[str, int]
    keep: str
    n_missing: int
    bytes_missing: int
    bytes_free: int
    seconds: float
    fill_bytes: int


@dataclass(frozen=True)
class Plan:
    """What a run will take. Hours are those of its longest course; patience may end it earlier.

    Attributes:
        run_id: of the run; ``done``: whether there is a finished row of it, so that nothing will be computed.
        items: by split; ``parameters``: that are trained.
        layers: None without ELMo.
        step: None for a run that is done.
        epochs: at most; ``updates``: in all of them.
    """

    run_id: str
    done: bool
    items: dict[str, int]
    parameters: int
    layers: Layers | None
    step: StepCost | None
    epochs: int
    updates: int

    @property
    def fit_seconds(self) -> float:
        """Training, with a dev score after each epoch."""
        if self.step is None:
            return 0.0
        return self.updates / self.step.n_batches * self.step.epoch_seconds + self.epochs * self.step.dev_seconds

    @property
    def seconds(self) -> float:
        """All of it, after the data have been read."""
        layers = 0.0 if self.layers is None else self.layers.seconds
        return 0.0 if self.done else layers + self.fit_seconds

    @property
    def peak_bytes(self) -> int:
        """Memory at the peak; what filling the store has used is kept for training, but not always fit for it."""
        if self.step is None:
            return 0
        training = _HEAP_GROWTH * (self.step.peak_bytes - self.step.bytes_before)
        return self.step.bytes_before + training + (0 if self.layers is None else self.layers.fill_bytes)


def make_plan(
    cfg: dict[str, Any], run_id: str, data: TaskData, encoder: Encoder | None, elmo: Elmo, done: bool
) -> Plan:
    """Read the data, look at the store, and try the machine.

    Args:
        cfg: the checked configuration of a supervised task.
        run_id: of the run.
        data: not yet read.
        encoder: the frozen biLM, or the encoder in its place; None without ELMo.
        elmo: its places.
        done: whether the run has a finished row.

    Raises:
        UserError: for bad input, and if disk or memory will not do.
    """
    data.read()
    items = {split: len(data.items[split]) for split in SPLITS if split in data.items}
    store = build_store(cfg, encoder)
    splits = SPLITS if cfg["test"] else SPLITS[:2]
    layers = None if encoder is None or store is None else plan_layers(data, encoder, store, splits, done)
    if layers is not None:
        data.use_layers(stand_in(store), splits)  # type: ignore[arg-type]
    model = build_model(cfg, data, elmo)
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    epochs, max_steps = cfg["trainer"]["max_epochs"], cfg["trainer"]["max_steps"]
    if done:
        return Plan(run_id, True, items, parameters, layers, None, epochs, 0)
    check_disk(Path(cfg["paths"]["outputs"]), 4 * parameters * _WRITTEN_BESIDE)
    module = build_module(cfg, model)
    step = step_cost(module, data, choose_device(cfg), cfg["task"]["training"]["grad_norm"], allow_memory)
    updates = epochs * step.n_batches
    if max_steps >= 0 and max_steps < updates:
        updates = max_steps
        epochs = min(epochs, -(-updates // step.n_batches))
    return Plan(run_id, False, items, parameters, layers, step, epochs, updates)


def plan_layers(data: TaskData, encoder: Encoder, store: Store, splits: tuple[str, ...], done: bool) -> Layers:
    """What the store has and lacks, and what that takes.

    Raises:
        UserError: if it would outgrow its limit or the disk.
    """
    sentences = [text for split in splits for item in data.items[split] for text in data.reader.texts(item)]
    distinct = list(dict.fromkeys(map(tuple, sentences)))
    n_tokens = sum(map(len, distinct))
    words = {word for sentence in distinct for word in sentence}
    element = store.shards.dtype.itemsize
    kept = {"layers": n_tokens * encoder.n_layers * encoder.dim * element}
    if hasattr(encoder, "encode"):
        kept["tokens"] = (len(words) + 2) * encoder.dim // 2 * element  # two are the sentence marks
    missing = store.missing(store.wanted(sentences))
    free = shutil.disk_usage(existing(store.shards.folder)).free
    n_missing = 0 if done else sum(map(len, missing.values()))
    seconds, fill_bytes = 0.0, 0
    if n_missing:
        store.shards.check_room(n_missing, store.limit_gb)
        rate = reading_rate(encoder, list(missing.values()))
        if isinstance(store, LayerStore):
            n_words = distinct_words(list(missing.values()), store.shard_tokens)
            seconds = n_missing * rate.per_token + n_words * rate.per_word
            shard_floats = min(n_missing, store.shard_tokens) * encoder.n_layers * encoder.dim
            fill_bytes = round(_SHARD_COPIES * 4 * shard_floats)
        else:
            seconds = n_missing * rate.per_word
    return Layers(
        n_tokens=n_tokens,
        n_words=len(words),
        bytes_kept=kept,
        keep="layers" if isinstance(store, LayerStore) else "tokens",
        n_missing=n_missing,
        bytes_missing=n_missing * store.shards.row_bytes,
        bytes_free=free,
        seconds=seconds,
        fill_bytes=fill_bytes,
    )


def allow_memory(n_bytes: int) -> None:
    """Refuse a step that this machine cannot hold.

    Raises:
        UserError: with what it takes and what there is.
    """
    there = available_bytes()
    if there is not None and n_bytes > there:
        raise UserError(
            f"the largest batch takes about {size(n_bytes)} of memory, but {size(there)} are there; "
            "lower task.training.batch_tokens or task.training.batch_size"
        )


def check_disk(folder: Path, n_bytes: int) -> None:
    """Refuse a run whose weights the disk cannot hold.

    Raises:
        UserError: with what they take and what is free.
    """
    free = shutil.disk_usage(existing(folder)).free
    if n_bytes > free:
        raise UserError(
            f"weights and state of training take {size(n_bytes)}, but only {size(free)} are free in {folder}; "
            "set paths.outputs to another disk"
        )


def existing(folder: Path) -> Path:
    """A folder, or the nearest one above it that is there."""
    return next((path for path in (folder, *folder.absolute().parents) if path.is_dir()), Path("/"))


def total(plans: Mapping[str, Plan]) -> float:
    """Seconds of some runs one after the other; layers that several of them need are computed once."""
    layers: dict[tuple[str, int, int], float] = {}
    for plan in plans.values():
        if plan.layers is not None and not plan.done:
            layers[plan.layers.keep, plan.layers.n_missing, plan.layers.n_tokens] = plan.layers.seconds
    return sum(layers.values()) + sum(plan.fit_seconds for plan in plans.values())
