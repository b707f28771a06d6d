"""Models with their weights, metrics and optimizers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from elmo_tasks.assembly.encoder import bilm_options
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.config.components import make
from elmo_tasks.elmo import Elmo
from elmo_tasks.errors import UserError
from elmo_tasks.models.base import TaskModel
from elmo_tasks.pretrain.export import InitialWeights, read_initial_weights
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.tensors import check_weights, read_tensors


class HasModelParts(Protocol):
    """Data that have been read, or what a run has kept of them."""

    def model_parts(self) -> dict[str, Any]:
        """What the model must know of the data, such as numbers of labels and the word embedding."""


def build_model(cfg: dict[str, Any], data: HasModelParts, elmo: Elmo) -> TaskModel:
    """The task model."""
    model: TaskModel = make(cfg["task"]["model"], cfg["packages"], **data.model_parts(), elmo=elmo)
    return model


def build_initial_weights(cfg: dict[str, Any]) -> InitialWeights | None:
    """The weights that a biLM's training starts from; None if it starts from random ones."""
    init = cfg["task"]["lm"]["init"]
    return None if init is None else read_initial_weights(init, bilm_options(cfg["bilm"]))


def build_language_model(cfg: dict[str, Any], data: LmData, initial: InitialWeights | None) -> LanguageModel:
    """A biLM with its softmax, for training."""
    parts = {"vocabulary_size": len(data.vocabulary), "bilm": BiLM(bilm_options(cfg["bilm"]))}
    model: LanguageModel = make(cfg["task"]["model"], cfg["packages"], **parts)
    if initial is not None:
        initial.put_into(model)
    return model


def check_optimizer(cfg: dict[str, Any]) -> None:
    """Try the optimizer's settings, before anything is read.

    Raises:
        UserError: if the optimizer does not take them.
    """
    node = cfg["task"]["optimizer"]
    try:
        make(node, cfg["packages"])([nn.Parameter(torch.zeros(1))])
    except (TypeError, ValueError, RuntimeError) as error:
        found = ", ".join(f"{key}={value}" for key, value in node.items() if key not in ("_target_", "_partial_"))
        raise UserError(f"task.optimizer must be what {node['_target_']} takes, found {found} ({error})") from error


def read_weights(model: nn.Module, path: Path) -> None:
    """Load the weights of an earlier run, its ``model.safetensors``.

    Raises:
        UserError: if the file is missing, damaged or of another model.
    """
    weights = read_tensors(path)
    check_weights(model, weights, path)
    model.load_state_dict(weights)
