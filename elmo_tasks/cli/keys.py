"""What ``elmo-tasks run --help`` prints: every group and key of the configuration, with the comments of ``conf/``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from hydra import compose, initialize_config_dir
from hydra._internal.utils import get_args_parser
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_tasks.config.compose import search_path
from elmo_tasks.config.resolvers import register
from elmo_tasks.places import CONF

_LINE = re.compile(r"(?P<indent> *)(?P<key>[\w/@]+):(?: +(?P<value>[^#\s][^#]*?))?(?: +# (?P<comment>.*))?$")
_DEFAULT = re.compile(r"  - (?P<group>[\w/]+): \w+(?: +# (?P<comment>.*))?$")
_CHOICE = re.compile(r"[\w/]+=\w+")

_USAGE = """\
usage: elmo-tasks run [KEY=VALUE ...]       one experiment (also: python run.py)
       elmo-tasks sweep [KEY=A,B,C ...]     one for each combination of values, then a table

A key chooses a file of a group (task=ner) or sets a value (elmo.lambda=0.1). elmo-tasks run task=ner --help shows the
keys of that task; --cfg job --resolve prints the configuration; --hydra-help lists the options of Hydra."""


class Key(NamedTuple):
    """A key with its default and the comment that explains it."""

    name: str
    value: str
    comment: str


class ConfigFolders(NamedTuple):
    """The files of a configuration, in the user's folder, if there is one, and in that of the project."""

    folders: Sequence[Path]

    def find(self, group: str, name: str) -> Path | None:
        """The file of a choice; None if there is none."""
        paths = (folder / group / f"{name}.yaml" for folder in self.folders)
        return next((path for path in paths if path.is_file()), None)

    def names(self, group: str) -> list[str]:
        """The choices of a group."""
        return sorted({path.stem for folder in self.folders for path in (folder / group).glob("*.yaml")})


def describe(arguments: Sequence[str]) -> str:
    """The help text, for the choices that the arguments make.

    Raises:
        HydraException: if a choice is not there.
    """
    own = get_args_parser().parse_known_args(list(arguments))[0].config_dir
    files = ConfigFolders([CONF] if own is None else [Path(own).absolute(), CONF])
    cfg = _compose(arguments, files)
    chosen: dict[str, str | None] = dict(cfg.hydra.runtime.choices)
    lines = [_USAGE, "", "Groups (the first choice is the one that is used here):"]
    keys: list[Key] = []
    for group, comment in _groups():
        choice = chosen[group] or "null"
        others = [name for name in files.names(group) if name != choice]
        lines.append(f"  {group + '=':<9} {' | '.join([choice, *others])}\n            {comment}")
        keys += read_keys(files, group, choice, group, chosen)
    keys += [
        key for key in read_keys(files, "", "config", "", chosen) if not key.name.startswith(("hydra", "defaults"))
    ]
    width = min(34, max(len(key.name) for key in keys))
    lines += ["", "Keys, their values here, and what they mean:"]
    for key in keys:
        lines.append(f"  {key.name:<{width}} {_resolved(key, cfg)}" + (f"   # {key.comment}" if key.comment else ""))
    return "\n".join(lines)


def _compose(arguments: Sequence[str], files: ConfigFolders) -> DictConfig:
    """The configuration, with Hydra's own, for the groups' files that the arguments choose.

    A task may choose word vectors and a biLM, and a scale an optimizer.
    """
    register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        overrides = [*map(search_path, files.folders[:-1]), *filter(_CHOICE.fullmatch, arguments)]
        return compose("config", overrides, return_hydra_config=True)


def _resolved(key: Key, cfg: DictConfig) -> str:
    """The key's value; where it depends on other keys, what that gives here."""
    if "${" not in key.value:
        return key.value
    try:
        value = OmegaConf.select(cfg, key.name)
        value = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    except OmegaConfBaseException:
        return key.value
    return value if isinstance(value, str) else json.dumps(value)


def _groups() -> Iterator[tuple[str, str]]:
    """Group and meaning of each line of the defaults list."""
    for line in (CONF / "config.yaml").read_text("utf-8").splitlines():
        if (found := _DEFAULT.match(line)) and (CONF / found["group"]).is_dir():
            yield found["group"], re.split(r" {2,}", found["comment"] or "")[-1]


def read_keys(files: ConfigFolders, group: str, name: str, prefix: str, chosen: Mapping[str, str | None]) -> list[Key]:
    """The keys of a file below a dotted prefix, in order; those of the files that it builds on come first.

    Args:
        files: among which it is.
        group: of the file; empty for the main file.
        name: of the file.
        prefix: empty for the main file.
        chosen: the file of each group, by the group's name and, where it is not the same, the key below which it is.
    """
    keys: dict[str, Key] = {}
    path = files.find(group, name)
    if path is None:
        return []
    for other, choice, below in _built_on(path, group, prefix, chosen):
        keys |= {key.name: key for key in read_keys(files, other, choice, _dotted(prefix, below), chosen)}
    open_keys: list[tuple[int, str]] = []
    for line in path.read_text("utf-8").splitlines():
        if not (found := _LINE.match(line)):
            continue
        indent = len(found["indent"])
        open_keys = [*(pair for pair in open_keys if pair[0] < indent), (indent, found["key"])]
        key_name = _dotted(prefix, *(key for _, key in open_keys))
        before = keys.get(key_name)
        comment = found["comment"] or (before.comment if before else "")
        if found["value"] and "defaults" not in key_name.split("."):
            keys[key_name] = Key(key_name, found["value"], comment)
    return [key for key in keys.values() if key.name.rpartition(".")[2] != "_partial_"]


def _built_on(path: Path, group: str, prefix: str, chosen: Mapping[str, str | None]) -> Iterator[tuple[str, str, str]]:
    """Group and name of the files in a file's defaults list, and the key below which each one's keys are.

    An entry ``/optimizer@optimizer`` of a task is a file of another group, below ``task.optimizer``.
    """
    if not group:  # the main file, whose defaults list is that of the groups
        return
    content: Any = OmegaConf.to_container(OmegaConf.load(path))
    for entry in content.get("defaults", []):
        other, name = ("", entry.partition("@")[0]) if isinstance(entry, str) else next(iter(entry.items()))
        if other.startswith("/"):
            other, _, below = other[1:].partition("@")
            yield other, str(chosen[f"{other}@{_dotted(prefix, below)}"]), below
        else:
            relative = PurePosixPath(group, other, name)
            yield str(relative.parent), relative.name, other


def _dotted(*names: str) -> str:
    return ".".join(filter(None, names))
