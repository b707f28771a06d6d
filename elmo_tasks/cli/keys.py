"""What ``elmo-tasks run --help`` prints: every group and key of the configuration, with the comments of ``conf/``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from omegaconf import OmegaConf

from elmo_tasks.places import CONF

_LINE = re.compile(r"(?P<indent> *)(?P<key>[\w/@]+):(?: +(?P<value>[^#\s][^#]*?))?(?: +# (?P<comment>.*))?$")
_DEFAULT = re.compile(r"  - (?P<group>[\w/]+): (?P<choice>\w+)(?: +# (?P<comment>.*))?$")

_USAGE = """\
usage: elmo-tasks run [KEY=VALUE ...]       one experiment (also: python run.py)
       elmo-tasks sweep [KEY=A,B,C ...]     one for each combination of values, then a table

A key chooses a file of a group (task=ner) or sets a value (elmo.lambda=0.1). elmo-tasks run task=ner --help shows the
keys of that task; --cfg job prints the composed configuration; --hydra-help lists the options of Hydra."""


class Key(NamedTuple):
    """A key with its default and the comment that explains it."""

    name: str
    value: str
    comment: str


def describe(arguments: Sequence[str]) -> str:
    """The help text, for the choices that the arguments make."""
    chosen = dict(text.split("=", 1) for text in arguments if "=" in text)
    lines = [_USAGE, "", "Groups (the first choice is the one that is used here):"]
    keys: list[Key] = []
    for group, choice, comment in _groups():
        choice = chosen.get(group, choice)
        others = [name for path in sorted((CONF / group).glob("*.yaml")) if (name := path.stem) != choice]
        lines.append(f"  {group + '=':<9} {' | '.join([choice, *others])}\n            {comment}")
        keys += read_keys(CONF / group / f"{choice}.yaml", group)
    keys += [key for key in read_keys(CONF / "config.yaml", "") if not key.name.startswith(("hydra", "defaults"))]
    width = min(34, max(len(key.name) for key in keys))
    lines += ["", "Keys, their values here, and what they mean:"]
    for key in keys:
        lines.append(f"  {key.name:<{width}} {key.value}" + (f"   # {key.comment}" if key.comment else ""))
    return "\n".join(lines)


def _groups() -> Iterator[tuple[str, str, str]]:
    """Group, default choice and meaning of each line of the defaults list; choices are listed apart."""
    for line in (CONF / "config.yaml").read_text("utf-8").splitlines():
        if (found := _DEFAULT.match(line)) and (CONF / found["group"]).is_dir():
            yield found["group"], found["choice"], re.split(r" {2,}", found["comment"] or "")[-1]


def read_keys(path: Path, prefix: str) -> list[Key]:
    """The keys of a file below a dotted prefix, in order; those of the files that it builds on come first."""
    keys: dict[str, Key] = {}
    if not path.is_file():
        return []
    lines = path.read_text("utf-8").splitlines()
    for other, below in _built_on(path):
        keys |= {key.name: key for key in read_keys(other, ".".join(filter(None, (prefix, below))))}
    open_keys: list[tuple[int, str]] = []
    for line in lines:
        if not (found := _LINE.match(line)):
            continue
        indent = len(found["indent"])
        open_keys = [*(pair for pair in open_keys if pair[0] < indent), (indent, found["key"])]
        name = ".".join(filter(None, (prefix, *(key for _, key in open_keys))))
        before = keys.get(name)
        comment = found["comment"] or (before.comment if before else "")
        if found["value"] and "defaults" not in name.split("."):
            keys[name] = Key(name, found["value"], comment)
    return [key for key in keys.values() if key.name.rpartition(".")[2] != "_partial_"]


def _built_on(path: Path) -> Iterator[tuple[Path, str]]:
    """The files of the same group in a file's defaults list, and the key below which each one's keys are."""
    if path.parent == CONF:  # whose defaults list is that of the groups
        return
    for entry in OmegaConf.select(OmegaConf.load(path), "defaults", default=[]):
        if isinstance(entry, str):
            folder, name = "", entry.partition("@")[0]
        else:
            ((folder, name),) = entry.items()
        other = path.parent / folder / f"{name}.yaml"
        if other.is_file():
            yield other, folder
