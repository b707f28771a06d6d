"""Values of ``conf/`` that depend on something else: the scale, the text that a biLM is trained on, the processor."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_tasks.errors import UserError

SHARDS = "shards"
"""``task.lm.text``: text files of their own, and not a task's sentences."""


def by_scale(values: DictConfig, *, _root_: DictConfig) -> Any:
    """``${by_scale:{paper:A,cpu:B,sample:C}}``: A at ``scale=paper``; B at ``scale=cpu``, or C with ``data=sample``.

    Raises:
        UserError: for a scale without a value.
    """
    scale = _root_.scale.name
    if scale == "cpu" and _root_.data.name == "sample" and "sample" in values:
        return _as_config(values["sample"])
    if scale not in values or scale == "sample":
        raise UserError(f"scale.name must be one of cpu, paper, found {scale!r}")
    return _as_config(values[scale])


def _as_config(value: Any) -> Any:
    """The value; a list as a configuration, which Hydra's ``--resolve`` needs."""
    return OmegaConf.create(value) if isinstance(value, list) else value


def by_text(values: DictConfig, *, _root_: DictConfig) -> Any:
    """``${by_text:{shards:A,task:B}}``: A with ``task.lm.text=shards``, B with the text of a task."""
    return values["shards" if _root_.task.lm.text == SHARDS else "task"]


def by_processor(values: DictConfig, *, _root_: DictConfig) -> Any:
    """``${by_processor:{bfloat16:A,other:B}}``: A on a GPU or a processor with bfloat16 instructions."""
    from elmo_tasks.processor import device_for, has_instructions  # PyTorch takes seconds to import

    on_gpu = device_for(_root_.trainer.accelerator) == "cuda"
    return values["bfloat16" if on_gpu or has_instructions("bfloat16") else "other"]


def register() -> None:
    """Register the resolvers with OmegaConf; Hydra's joblib launcher forgets them before each job of a process."""
    OmegaConf.register_new_resolver("by_scale", by_scale, replace=True)
    OmegaConf.register_new_resolver("by_text", by_text, replace=True)
    OmegaConf.register_new_resolver("by_processor", by_processor, replace=True)
