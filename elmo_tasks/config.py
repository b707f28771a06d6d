"""Checks on the composed configuration, before anything is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from elmo_tasks.errors import UserError
from elmo_tasks.rules import rules_for

TASKS = Path(__file__).parent.parent / "conf" / "task"
SHARDS = "shards"
"""``task.lm.text``: text files of its own, and not a task's sentences."""


def validate(cfg: DictConfig) -> dict[str, Any]:
    """Resolve the configuration and check each value that a user sets.

    Returns:
        the resolved configuration as plain Python containers.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    for key in OmegaConf.missing_keys(cfg):
        raise UserError(f"{key} is not set; add {key}=... to the command line")
    try:
        resolved = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise UserError(f"{error.full_key} is not set; add {error.full_key}=... to the command line") from error
    except OmegaConfBaseException as error:
        raise UserError(f"the configuration cannot be resolved: {str(error).splitlines()[0]}") from error
    assert isinstance(resolved, dict)
    for key, (expected, check) in rules_for(resolved["task"]).items():
        value: Any = resolved
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if not check(value):
            raise UserError(f"{key} must be {expected}, found {value!r}")
    if resolved["words"]["name"] == "none" and resolved["elmo"]["placement"] not in ("input", "both"):
        raise UserError("words=none leaves a model nothing to read but ELMo at its input; add words=glove")
    if "lm" in resolved["task"] and resolved["task"]["lm"]["text"] != SHARDS:
        resolved["task"]["lm"]["source"] = source_of_text(cfg, resolved["task"]["lm"]["text"])
    return resolved  # type: ignore[return-value]


def source_of_text(cfg: DictConfig, name: Any) -> dict[str, Any]:
    """The files and the reader of a task whose sentences a biLM is to read, with ``task.lm.changes`` to them.

    Raises:
        UserError: if there is no such task.
    """
    sections = {path.stem: OmegaConf.load(path) for path in sorted(TASKS.glob("*.yaml"))}
    tasks = [task for task, section in sections.items() if "reader" in section]
    if name not in tasks:
        raise UserError(f"task.lm.text must be {SHARDS} or one of {', '.join(tasks)}, found {name!r}")
    changes = cfg.task.lm.changes.get(name, {})
    whole = OmegaConf.create({**cfg, "task": OmegaConf.merge(sections[name], changes)})
    source = {key: whole.task[key] for key in ("files", "hub", "reader")}
    return {key: OmegaConf.to_container(part, resolve=True) if part else None for key, part in source.items()}
