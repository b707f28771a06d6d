"""A task's model with its weights, its metric and its optimizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from hydra.utils import get_class
from torch import nn

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.build.encoder import bilm_options
from elmo_tasks.build.instances import make
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.module import TaskData
from elmo_tasks.elmo import Elmo
from elmo_tasks.errors import UserError
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.module import TaskModule
from elmo_tasks.start import Start, check_shapes, read_start, read_tensors


def build_start(cfg: dict[str, Any]) -> Start | None:
    """The weights that a biLM's training starts from, if it does not start afresh."""
    init = cfg["task"]["lm"]["init"] if "lm" in cfg["task"] else None
    return None if init is None else read_start(init, bilm_options(cfg["bilm"]))


def build_model(
    cfg: dict[str, Any], data: TaskData | LmData, elmo: Elmo | None, start: Start | None = None
) -> nn.Module:
    """The task model; what depends on data (numbers of labels, the word embedding) is handed to it here."""
    parts: dict[str, Any] = data.model_parts()
    if elmo is None:
        parts["bilm"] = BiLM(bilm_options(cfg["bilm"]))
    else:
        parts["elmo"] = elmo
    model: nn.Module = make(cfg["task"]["model"], **parts, _convert_="all")
    if start is not None:
        assert isinstance(model, LanguageModel)
        start.put_into(model)
    return model


def build_module(cfg: dict[str, Any], model: nn.Module) -> TaskModule:
    """The training loop body."""
    return TaskModule(
        model=model,
        metric=make(cfg["task"]["metric"]),
        optimizer=make(cfg["task"]["optimizer"]),
        schedule=cfg["task"]["training"]["schedule"],
        max_steps=cfg["trainer"]["max_steps"],
    )


def check_optimizer(cfg: dict[str, Any]) -> None:
    """Try the optimizer's settings, before anything is read.

    Raises:
        UserError: if the optimizer does not take them.
    """
    if "optimizer" not in cfg["task"]:
        return
    node = cfg["task"]["optimizer"]
    try:
        make(node)([nn.Parameter(torch.zeros(1))])
    except (TypeError, ValueError) as error:
        found = ", ".join(f"{key}={value}" for key, value in node.items() if key not in ("_target_", "_partial_"))
        raise UserError(f"task.optimizer must be what {node['_target_']} takes, found {found} ({error})") from error


def read_weights(model: nn.Module, path: Path) -> None:
    """Take over the weights of an earlier run, its ``model.safetensors``.

    Raises:
        UserError: if the file is missing, damaged or of another model.
    """
    weights = read_tensors(path)
    check_shapes(model, weights, path)
    model.load_state_dict(weights)


def can_vote(cfg: dict[str, Any]) -> bool:
    """Whether the task's model can be a member of an ensemble (see ``Votes`` in ``models/base.py``)."""
    model = cfg["task"].get("model")
    return model is not None and hasattr(get_class(model["_target_"]), "log_probabilities")


def softmax_epochs(cfg: dict[str, Any], start: Start | None) -> int:
    """Epochs that train a new softmax alone, on a biLM that came without one."""
    without = start is not None and start.vocabulary is None
    return int(cfg["task"]["lm"]["softmax_epochs"]) if without else 0
