"""Checks on the composed configuration, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_tasks.configuration.check import check_keys, check_section
from elmo_tasks.configuration.instances import check_nodes
from elmo_tasks.configuration.resolvers import SHARDS
from elmo_tasks.configuration.rules import find_rule
from elmo_tasks.configuration.sections import TASKS as TASK_SECTIONS
from elmo_tasks.configuration.sections import Configuration, SupervisedTask
from elmo_tasks.configuration.targets import check_targets
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.places import CONF
from elmo_tasks.values import Seed

TASKS = CONF / "task"


def validate(cfg: DictConfig) -> dict[str, Any]:
    """Resolve the configuration and check every key and every value of it.

    Returns:
        the resolved configuration as plain Python containers; where a biLM reads a task's text, ``task.lm.source`` says
        where that text comes from.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    resolved = resolve(cfg)
    check_section(Configuration, resolved)
    task = resolved["task"]
    if not isinstance(task, dict) or task.get("kind") not in TASK_SECTIONS:
        raise UserError(f"task.kind must be one of {', '.join(TASK_SECTIONS)}; choose a task, such as task=sst5")
    check_section(TASK_SECTIONS[task["kind"]], task, "task.")
    _check_lists(resolved)
    check_targets(resolved, resolved["packages"])
    if resolved["words"]["name"] == "none" and resolved["elmo"]["placement"] not in ("input", "both"):
        raise UserError("words=none needs ELMo at the input; set elmo.placement=input or both, or words=glove")
    text = task.get("lm", {}).get("text", SHARDS)  # of a biLM's training
    if text != SHARDS:
        task["lm"]["source"] = find_text_source(cfg, text)
    return resolved


def check_stored(config: dict[str, Any], packages: Sequence[str]) -> None:
    """Check that the configuration in the folder of a finished supervised run has values of the right types and ranges.

    Another version may have written it, so that keys may be missing or unknown.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    check_section(Configuration, config, complete=False)
    check_section(SupervisedTask, config.get("task"), "task.", complete=False)
    check_nodes(config, packages)


def resolve(cfg: DictConfig) -> dict[str, Any]:
    """The configuration as plain containers, its interpolations resolved.

    Raises:
        UserError: if a value is missing, or an interpolation names what is not there.
    """
    try:
        resolved = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except RecursionError as error:
        raise UserError("the configuration cannot be resolved: a value refers to itself") from error
    except OmegaConfBaseException as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        for key in _unset_keys(OmegaConf.to_container(cfg)):
            whole = key.partition("[")[0]  # the command line cannot set one place of a list
            raise UserError(f"{key} is not set; add {whole}=... to the command line") from error
        first = shortened(str(error).splitlines()[0], 200)
        raise UserError(f"the configuration cannot be resolved: {first} (at {error.full_key})") from error
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def _unset_keys(value: Any, key: str = "") -> Iterator[str]:
    """The keys at and below a value that are not set, such as ``data.root`` or ``ensemble[0]``."""
    if value == "???":
        yield key
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _unset_keys(part, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _unset_keys(part, f"{key}[{number}]")


def _check_lists(cfg: dict[str, Any]) -> None:
    """Check the keys whose values are lists."""
    seeds, packages = cfg["ensemble"], cfg["packages"]
    is_seed = find_rule(Seed)[1]
    if seeds is not None and not (
        isinstance(seeds, list) and all(map(is_seed, seeds)) and len(set(seeds)) == len(seeds) > 1
    ):
        raise UserError(
            f"ensemble must be a list of two or more different seeds, such as [1,2,3], or null, found {quoted(seeds)}"
        )
    if not isinstance(packages, list) or not all(isinstance(name, str) and name for name in packages):
        raise UserError(f"packages must be a list of packages, such as [my_lab], found {quoted(packages)}")
    tags = cfg["logger"].get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        raise UserError(f"logger.tags must be a list of texts, found {quoted(tags)}")


SOURCE = ("files", "hub", "reader", "dev_share")
"""The keys of a task that say where its items come from."""
FILES = ("train", "dev", "test")
"""The keys of its section ``files``."""


def find_text_source(cfg: DictConfig, name: Any) -> dict[str, Any]:
    """The files and the reader of a task whose sentences a biLM is to read, with ``task.lm.changes`` to them.

    Raises:
        UserError: if there is no such task, or ``task.lm.changes`` has an unknown task or key.
    """
    base = OmegaConf.load(TASKS / "base" / "supervised.yaml")
    sections = {path.stem: OmegaConf.load(path) for path in sorted(TASKS.glob("*.yaml"))}
    tasks = [task for task, section in sections.items() if "reader" in section]
    if name not in tasks:
        raise UserError(f"task.lm.text must be {SHARDS} or one of {', '.join(tasks)}, found {name!r}")
    changes: Any = OmegaConf.to_container(cfg.task.lm.changes)
    check_keys(changes, tasks, "task.lm.changes.")
    for task, change in changes.items():
        check_keys(change, SOURCE, f"task.lm.changes.{task}.")
        check_keys(change.get("files", {}), FILES, f"task.lm.changes.{task}.files.")
    whole = OmegaConf.create({**cfg, "task": OmegaConf.merge(base, sections[name], changes.get(name, {}))})
    return {key: _plain(whole.task[key]) for key in SOURCE}


def _plain(value: Any) -> Any:
    """A section as plain containers, its interpolations resolved; any other value as it is."""
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
