"""A configuration from a command line, from what Hydra has composed, or from a file: each is checked once, here."""

from __future__ import annotations

import copy
import functools
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from elmo_tasks.config.components import check_targets
from elmo_tasks.config.resolvers import SHARDS, register
from elmo_tasks.config.schema import ANOTHER_VERSION, Config, FilesConfig, SourceConfig
from elmo_tasks.config.words import fields_of, first_problem, must_be, unknown_key
from elmo_tasks.errors import UserError, shortened
from elmo_tasks.places import CONF

register()

TASKS = CONF / "task"

Tree = dict[str, Any]
"""A resolved configuration as plain containers."""

_READ_BY_RESOLVERS = ("scale", "data.name", "task.lm.text", "trainer.accelerator")
"""Keys that the resolvers of ``conf/`` read without their names standing in an interpolation."""


def compose(overrides: Sequence[str], folders: Sequence[Path] = ()) -> Config:
    """The configuration that Hydra composes with some overrides, in a tenth of its time after the first.

    Args:
        overrides: of the command line.
        folders: of the user's own configurations, found before those of the project.

    Raises:
        UserError: for an unknown key, group or value.
    """
    return _compose(tuple(overrides), tuple(folders), os.environ.get("ELMO_TASKS_OUTPUTS"))


@functools.cache
def _compose(overrides: tuple[str, ...], folders: tuple[Path, ...], environment: str | None) -> Config:
    """As :func:`compose`; ``environment`` is what ``paths.outputs`` depends on."""
    try:
        if not any(text.startswith("hydra.searchpath=") for text in overrides):  # other groups may be there
            parsed = OverridesParser.create().parse_overrides(list(overrides))
            choices = [each for each in parsed if _is_choice(each, folders)]
            values = [each for each in parsed if each not in choices]
            chosen = _chosen(tuple(str(each.input_line) for each in choices), folders, environment)
            tree = chosen.set(values)
            return _checked(tree) if tree is not None else validate(chosen.merge(values))
    except (HydraException, ValueError):  # Hydra's own composition has the last word on errors
        pass
    try:
        return validate(_compose_by_hydra(overrides, folders))
    except (HydraException, ValueError) as error:  # a group's choice that is a number is a ValueError
        raise UserError(f"{' '.join(overrides)}: {hydra_sentence(error)}") from error


def _is_choice(override: Override, folders: Sequence[Path]) -> bool:
    """Whether an override chooses a file of a group, or none, or is Hydra's own, which no key reads."""
    is_group = any((folder / override.key_or_group).is_dir() for folder in (*folders, CONF))
    return override.is_hydra_override() or (is_group and not isinstance(override.value(), dict))


def _compose_by_hydra(overrides: Sequence[str], folders: Sequence[Path]) -> DictConfig:
    register()  # a launcher may have forgotten the resolvers
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra_compose("config", [*map(search_path, folders), *overrides])


@dataclass(frozen=True)
class _Chosen:
    """What the groups' files say before single values are set.

    Attributes:
        config: with its interpolations.
        tree: resolved; None where that needs a value that is not set.
        read: keys that an interpolation may read.
    """

    config: DictConfig
    tree: Tree | None
    read: frozenset[str]

    def set(self, overrides: Sequence[Override]) -> Tree | None:
        """The resolved configuration with some values; None where only OmegaConf can tell what it is."""
        tree = copy.deepcopy(self.tree)
        if tree is None or not all(self._set(tree, override) for override in overrides):
            return None
        is_text = tree.get("task", {}).get("lm", {}).get("text", SHARDS) == SHARDS
        return tree if is_text and next(_unset_keys(tree), None) is None else None

    def merge(self, overrides: Sequence[Override]) -> DictConfig:
        """The configuration with some values, as Hydra sets them after it has composed the choices."""
        ConfigLoaderImpl.validate_sweep_overrides_legal(list(overrides), RunMode.RUN, from_shell=False)
        config = copy.deepcopy(self.config)
        ConfigLoaderImpl._apply_overrides_to_config(list(overrides), config)
        return config

    def _set(self, tree: Tree, override: Override) -> bool:
        key, value = override.key_or_group, override.value()
        *sections, name = key.split(".")
        part: Any = tree
        for section in sections:
            part = part.get(section) if isinstance(part, dict) else None
        is_plain = override.type == OverrideType.CHANGE and override.package is None and _is_plain(value)
        is_known = isinstance(part, dict) and name in part and not isinstance(part[name], dict)
        if not is_plain or not is_known or any(_overlap(key, other) for other in self.read):
            return False
        part[name] = value
        return True


def _overlap(key: str, other: str) -> bool:
    return f"{key}.".startswith(f"{other}.") or f"{other}.".startswith(f"{key}.")


def _is_plain(value: Any) -> bool:
    """Whether OmegaConf takes a value as it is."""
    if isinstance(value, list):
        return all(not isinstance(each, list) and _is_plain(each) for each in value)
    return (
        value is None or type(value) in (bool, int, float) or (type(value) is str and not re.search(r"[$\\?]", value))
    )


@functools.cache
def _chosen(choices: tuple[str, ...], folders: tuple[Path, ...], environment: str | None) -> _Chosen:
    config = _compose_by_hydra(choices, folders)
    texts = re.findall(r'"(?:[^"\\]|\\.)*"', json.dumps(OmegaConf.to_container(config)))
    interpolations = [text for text in texts if "${" in text]
    read = frozenset(name.strip(".") for text in interpolations for name in re.findall(r"[\w.@-]+", text))
    is_relative = any(re.search(r"[{:,]\.", text) for text in interpolations)
    try:
        tree: Any = None if is_relative else OmegaConf.to_container(config, resolve=True)
    except (OmegaConfBaseException, UserError, RecursionError):
        tree = None
    return _Chosen(config, tree, read.union(_READ_BY_RESOLVERS) - {""})


def validate(composed: DictConfig) -> Config:
    """Resolve a composed configuration and check every key and every value of it; no class is imported.

    Where a biLM reads a task's text, ``task.lm.source`` says where that text comes from.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    return _checked(resolve(composed), composed)


def _checked(tree: Tree, composed: DictConfig | None = None) -> Config:
    config = _read(tree)
    check_targets(tree, config.packages)
    if config.words.name == "none" and config.elmo.placement not in ("input", "both"):
        raise UserError("words=none needs ELMo at the input; set elmo.placement=input or both, or words=glove")
    if config.task.kind != "language_model":
        return config
    if config.task.lm.source is not None:
        raise UserError("task.lm.source follows from task.lm.text; change a task's files with task.lm.changes")
    if config.task.lm.text == SHARDS or composed is None:
        return config
    lm = {**tree["task"]["lm"], "source": find_text_source(composed, config.task.lm.text)}
    return _read({**tree, "task": {**tree["task"], "lm": lm}})


def load(stored: Any, where: str, packages: Sequence[str] = ()) -> Config:
    """The configuration of a row or a run's folder, perhaps of another version; nothing in it is resolved.

    Args:
        stored: what stands there.
        where: the file, for messages.
        packages: that the user trusts; what the file says of it does not count.

    Raises:
        UserError: naming the file, the key, what it may be, and what was found.
    """
    try:
        config = _read(stored, ANOTHER_VERSION)
        check_targets(stored, packages)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    return config.model_copy(update={"packages": tuple(packages)})


def _read(tree: Any, context: str | None = None) -> Config:
    try:
        return Config.model_validate(tree, context=context)
    except ValidationError as error:
        task = tree.get("task") if isinstance(tree, dict) else None
        if task is not None and any(problem["loc"] == ("task",) for problem in error.errors()):
            kinds = "supervised, language_model, sense_probe"
            raise UserError(f"task.kind must be one of {kinds}; choose a task, such as task=sst5") from error
        raise UserError(first_problem(error, Config, tree)) from error


def resolve(composed: DictConfig) -> Tree:
    """A configuration as plain containers, its interpolations resolved.

    Raises:
        UserError: if a value is missing, or an interpolation names what is not there.
    """
    try:
        resolved: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except RecursionError as error:
        raise UserError("the configuration cannot be resolved: a value refers to itself") from error
    except OmegaConfBaseException as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        for key in _unset_keys(OmegaConf.to_container(composed)):
            whole = key.partition("[")[0]  # the command line cannot set one place of a list
            raise UserError(f"{key} is not set; add {whole}=... to the command line") from error
        first = shortened(str(error).splitlines()[0], 200)
        raise UserError(f"the configuration cannot be resolved: {first} (at {error.full_key})") from error
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


def find_text_source(composed: DictConfig, name: str) -> Tree:
    """The files and the reader of a task whose sentences a biLM is to read, with ``task.lm.changes`` to them.

    Raises:
        UserError: if there is no such task, or ``task.lm.changes`` has an unknown task or key.
    """
    base, sections = _task_files()
    tasks = [task for task, section in sections.items() if "reader" in section]
    if name not in tasks:
        raise UserError(f"task.lm.text must be {SHARDS} or one of {', '.join(tasks)}, found {name!r}")
    changes: Any = OmegaConf.to_container(composed.task.lm.changes)
    key, known = "task.lm.changes", list(fields_of(SourceConfig))
    _check_keys(changes, tasks, key)
    for task, change in changes.items():
        _check_keys(change, known, f"{key}.{task}")
        _check_keys(change.get("files", {}), list(fields_of(FilesConfig)), f"{key}.{task}.files")
    task = OmegaConf.merge(base, sections[name], changes.get(name, {}))
    found = OmegaConf.create({**composed, "task": task}).task
    return {name: _plain(found[name]) for name in known}


@functools.cache
def _task_files() -> tuple[Any, dict[str, Any]]:
    """What the supervised tasks share, and the file of each task."""
    files = sorted(TASKS.glob("*.yaml"))
    return OmegaConf.load(TASKS / "base" / "supervised.yaml"), {path.stem: OmegaConf.load(path) for path in files}


def _check_keys(values: Any, known: Sequence[str], key: str) -> None:
    if not isinstance(values, dict):
        raise UserError(must_be(key, SourceConfig, values))
    for name in values:
        if name not in known:
            raise UserError(unknown_key(f"{key}.{name}", known))


def _plain(value: Any) -> Any:
    """A section as plain containers, its interpolations resolved; any other value as it is."""
    return OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value


def search_path(folder: Path) -> str:
    """The override that adds a folder of configurations to that of the project."""
    place = f"file://{folder.absolute()}"
    return f"hydra.searchpath=[{place if re.fullmatch('[a-z0-9/:._-]+', place, re.IGNORECASE) else quote(place)}]"


def quote(value: str) -> str:
    """A text in quotes, as Hydra's command line reads it back."""
    escaped = re.sub(r"(\\*)('|$)", lambda found: 2 * found[1] + ("\\'" if found[2] else ""), value)
    return f"'{escaped}'"


def hydra_sentence(error: BaseException) -> str:
    """One sentence on a command line that Hydra refuses: what is wrong, and what the choices are."""
    key = getattr(error.__cause__, "full_key", None)
    parent = getattr(error.__cause__, "parent_node", None)
    if key is not None and parent is not None:
        choices = ", ".join(str(k) for k in parent if k != "hydra")
        meant = [] if "." in key else list(_ending_in(key, OmegaConf.to_container(parent, resolve=False)))
        hint = f"; {min(meant, key=len)} may be meant" if meant else ""
        return f"unknown key {key!r}; expected one of {choices}{hint}"
    options = getattr(error, "options", None)
    missing = getattr(error, "missing_cfg_file", None)
    if options and missing:
        return _unknown_choice(str(missing), options)
    override = getattr(error, "override", None)
    if override is not None:
        expected = "expected KEY=VALUE, without a space at the = or after a comma"
        return f"{override!r} cannot be read; {expected}; other signs need quotes of their own: 'KEY=\"VALUE\"'"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("Ambiguous value for argument"):
        given = lines[0].partition("'")[2].rstrip("'")
        return f"{given}: several values make a sweep; use elmo-tasks sweep, or python run.py -m (a list is KEY=[A,B])"
    if lines[1:2] == ["Available options:"]:
        return f"{lines[0]}; there are {', '.join(lines[2:])}"
    return " ".join(lines[:2])


def _unknown_choice(text: str, options: Sequence[str]) -> str:
    cut = text.find("//") if "//" in text else text.rfind("/")  # // is before an absolute path
    group, name = text[:cut], text[cut + 1 :]
    own = f"; a path of your own is {group}.path={name}" if "//" in text and group in ("bilm", "words") else ""
    return f"{group}={name}: unknown choice; expected one of {', '.join(sorted(options))}{own}"


def _ending_in(name: str, section: Any, prefix: str = "") -> Iterator[str]:
    """The keys of a configuration whose last part is a name."""
    for key, value in section.items() if isinstance(section, dict) else ():
        if key == name and prefix:
            yield f"{prefix}{key}"
        if key != "hydra":
            yield from _ending_in(name, value, f"{prefix}{key}.")
