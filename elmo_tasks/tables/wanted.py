"""What a table asks for: a configuration composed from overrides, and how rows differ from the defaults."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from elmo_tasks.config.compose import compose, hydra_sentence, quote
from elmo_tasks.config.identity import relevant, setting_key, short_digest
from elmo_tasks.errors import UserError
from elmo_tasks.places import CONF
from elmo_tasks.rows.fields import Kind
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import Setting, differing, flat

NO_ROOT = "DIR"
"""Placeholder for a missing ``data.root``: rows can be found without it, but nothing can be run."""


@dataclass(frozen=True)
class Wanted:
    """The configuration that a cell asks for.

    Args:
        overrides: of the command line that makes it.
        config: composed and checked.
        kind: of its runs.
        key: as :func:`elmo_tasks.config.identity.setting_key` gives it for their rows.
    """

    overrides: tuple[str, ...]
    config: dict[str, Any]
    kind: Kind
    key: str

    @property
    def task(self) -> str:
        """The task's name."""
        return str(self.config["task"]["name"])

    @property
    def trains(self) -> bool:
        """Whether there is a model to train."""
        return self.kind != "sense_probe"

    @property
    def run_key(self) -> str:
        """As :attr:`key`, and another one for files of other names: what they hold is not known here."""
        found = {key: value for key, value in flat(self.config).items() if f"{key}.".startswith(_FILES)}
        if self.config["elmo"]["placement"] == "none":
            found.pop("bilm.path")
        return short_digest([self.key, found])


_FILES = tuple(
    f"{key}." for key in ("data.root", "task.files", "task.hub", "task.data", "task.lm", "words.path", "bilm.path")
)
"""Where a configuration names what a run reads."""


@functools.cache
def compose_wanted(overrides: tuple[str, ...]) -> Wanted:
    """Compose the configuration with some overrides.

    Raises:
        UserError: for an unknown key, group or value, as ``run.py`` would.
    """
    with_root = overrides
    if "data=local" in overrides and not any(text.startswith("data.root=") for text in overrides):
        with_root = (*overrides, f"data.root={NO_ROOT}")
    checked = compose(with_root)
    config, kind = checked.to_json(), checked.task.kind
    return Wanted(with_root, config, kind, setting_key(config, kind))


def override(key: str, value: str) -> str:
    """``KEY=VALUE`` such that Hydra reads the value as this very text, whatever characters are in it."""
    try:
        if OverridesParser.create().parse_override(f"{key}={value}").value() == value:
            return f"{key}={value}"
    except HydraException:
        pass
    return f"{key}={quote(value)}"


def check_launcher(overrides: tuple[str, ...]) -> None:
    """Whether Hydra has a launcher.

    Raises:
        UserError: for an unknown launcher, or an unknown key of one.
    """
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            hydra_compose("config", list(overrides), return_hydra_config=True)
    except HydraException as error:
        hint = "; the others come with the extras sweep and slurm" if "hydra/launcher" in str(error) else ""
        raise UserError(f"{hydra_sentence(error)}{hint}") from error


SHOWN = ("data.name", "data.fraction", "scale.name", "elmo.placement", "elmo.mix", "elmo.lambda", "bilm.name")
"""Keys that have a column of their own, or a part in that of ELMo."""


def defaults(row: Row) -> dict[str, Any]:
    """The default configuration of a row's task with its biLM, by dotted key.

    With the task's usual biLM where there is no configuration of that name; the row's own for an unknown task.
    """
    usual = _usual(row, bilm=row.config.get("bilm", {}).get("name")) or _usual(row)
    return flat(relevant(row.config, row.kind) if usual is None else relevant(usual.config, usual.kind))


def distance(setting: Setting) -> int:
    """In how many keys a setting differs from its task's defaults; another biLM than the task's counts as one key."""
    usual = _usual(setting.first)
    other = usual is not None and setting.keys.get("bilm.name") not in (None, usual.config["bilm"]["name"])
    return len(_differing(setting)) + other


def _usual(row: Row, **others: Any) -> Wanted | None:
    """The defaults of a row's task with other choices; None where there are no such configurations.

    A row can hold any text, so only names of the project's own files are composed.
    """
    names = {"task": row.task, "data": row.data.name, "scale": row.scale, **others}
    for group, name in names.items():
        if not (
            isinstance(name, str) and re.fullmatch(r"\w[\w-]{0,59}", name) and (CONF / group / f"{name}.yaml").is_file()
        ):
            return None
    try:
        return compose_wanted(tuple(f"{group}={name}" for group, name in names.items()))
    except UserError:
        return None


def other_keys(setting: Setting) -> dict[str, Any]:
    """The keys in which a setting differs from its task's defaults and that have no column."""
    aside = ("elmo.", "bilm.") if setting.placement == "none" else ()
    found = _differing(setting)
    return {key: value for key, value in found.items() if key not in SHOWN and not key.startswith(aside)}


def _differing(setting: Setting) -> dict[str, Any]:
    return differing([setting.keys, defaults(setting.first)])[0]
