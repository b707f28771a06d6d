"""The plan of a supervised run: what there is to compute, what it takes, and whether it fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.assembly import build_model, build_module, build_store, choose_device
from elmo_tasks.data.module import TaskData
from elmo_tasks.data.source import SPLITS
from elmo_tasks.elmo import Elmo
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.planning.cost import StepCost, step_cost
from elmo_tasks.planning.layers import Layers, plan_layers
from elmo_tasks.planning.random_layers import random_store
from elmo_tasks.planning.room import allow_memory, check_disk

_WRITTEN_BESIDE = 6
"""Bytes that a run writes for weights and the state of training, as a multiple of the weights' own."""

_HEAP_GROWTH = 2
"""Memory of training after batches of many shapes, as a multiple of what the largest one takes (measured)."""


@dataclass(frozen=True)
class DoneSoFar:
    """What earlier processes have done of a run.

    Attributes:
        updates: those of a saved state, from which training resumes.
        trained: whether training has ended.
        scored: whether the run has all of its scores too, so that nothing is left.
    """

    updates: int = 0
    trained: bool = False
    scored: bool = False


@dataclass(frozen=True)
class Plan:
    """What a run will take. The hours are those of all epochs that are left; patience may end it earlier.

    Attributes:
        run_id: the run's name.
        done: what has been done of it.
        items: how many items each split has.
        parameters: how many numbers are trained.
        layers: what the layers take; None without ELMo.
        step: what training takes; None for a run that has been trained.
        epochs: epochs at most.
        updates: updates in all of them, those of a saved state included.
    """

    run_id: str
    done: DoneSoFar
    items: dict[str, int]
    parameters: int
    layers: Layers | None
    step: StepCost | None
    epochs: int
    updates: int

    @property
    def updates_left(self) -> int:
        """Updates that have yet to be made."""
        return max(0, self.updates - self.done.updates)

    @property
    def fit_seconds(self) -> float:
        """The rest of training, with a dev score after each epoch."""
        if self.step is None:
            return 0.0
        epochs_left = self.updates_left / self.step.n_batches
        return epochs_left * self.step.epoch_seconds + math.ceil(epochs_left) * self.step.dev_seconds

    @property
    def seconds(self) -> float:
        """All of it, after the data have been read."""
        layers = 0.0 if self.layers is None else self.layers.seconds
        return layers + self.fit_seconds

    @property
    def peak_bytes(self) -> int:
        """Memory at the peak; what filling the store has used is kept for training, but not always fit for it."""
        if self.step is None:
            return 0
        training = _HEAP_GROWTH * (self.step.peak_bytes - self.step.bytes_before)
        return self.step.bytes_before + training + (0 if self.layers is None else self.layers.fill_bytes)


def make_plan(
    cfg: dict[str, Any], run_id: str, data: TaskData, encoder: Encoder | None, elmo: Elmo, done: DoneSoFar
) -> Plan:
    """Read the data, look at the store, and try the machine.

    Args:
        cfg: the checked configuration of a supervised task.
        run_id: of the run.
        data: not yet read.
        encoder: the frozen biLM, or the encoder in its place; None without ELMo.
        elmo: its places.
        done: what has been done of the run.

    Raises:
        UserError: for bad input, and if disk or memory will not do.
    """
    data.read()
    items = {split: len(data.items[split]) for split in SPLITS if split in data.items}
    store = build_store(cfg, encoder)
    splits = SPLITS if cfg["test"] else SPLITS[:2]
    layers = None if encoder is None or store is None else plan_layers(data, encoder, store, splits, done.scored)
    if layers is not None:
        data.use_layers(random_store(store), splits)  # type: ignore[arg-type]
    model = build_model(cfg, data, elmo)
    parameters = model.n_trained
    epochs, max_steps = cfg["trainer"]["max_epochs"], cfg["trainer"]["max_steps"]
    if done.trained:
        return Plan(run_id, done, items, parameters, layers, None, epochs, 0)
    check_disk(Path(cfg["paths"]["outputs"]), 4 * parameters * _WRITTEN_BESIDE)
    module = build_module(cfg, model)
    step = step_cost(module, data, choose_device(cfg), cfg["task"]["training"]["grad_norm"], allow_memory)
    updates = epochs * step.n_batches
    if max_steps >= 0 and max_steps < updates:
        updates = max_steps
        epochs = min(epochs, -(-updates // step.n_batches))
    return Plan(run_id, done, items, parameters, layers, step, epochs, updates)


def total(plans: Mapping[str, Plan]) -> float:
    """Seconds of some runs one after the other; layers that several of them need are computed once."""
    layers: dict[tuple[Path, int, int], float] = {}
    for plan in plans.values():
        if plan.layers is not None:
            layers[plan.layers.folder, plan.layers.n_missing, plan.layers.n_tokens] = plan.layers.seconds
    return sum(layers.values()) + sum(plan.fit_seconds for plan in plans.values())
