"""A setting: a configuration composed from overrides, and the key by which its rows are found."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from elmo_tasks.configuration.validate import validate
from elmo_tasks.errors import UserError, hydra_sentence
from elmo_tasks.places import CONF
from elmo_tasks.rows.fields import Kind
from elmo_tasks.rows.settings import setting_key

NO_ROOT = "DIR"
"""Stands for ``data.root`` where none was given: rows are found without it, nothing can be run."""


@dataclass(frozen=True)
class Setting:
    """A cell's configuration.

    Args:
        overrides: of the command line that makes it.
        config: composed and checked.
        kind: of its runs.
        key: as :func:`elmo_tasks.rows.settings.setting_key` gives it for their rows.
    """

    overrides: tuple[str, ...]
    config: dict[str, Any]
    kind: Kind
    key: str

    @property
    def trains(self) -> bool:
        """Whether there is a model to train."""
        return self.kind != "sense_probe"


@functools.cache
def setting(overrides: tuple[str, ...]) -> Setting:
    """Compose the configuration with some overrides.

    Raises:
        UserError: for an unknown key, group or value, as ``run.py`` would.
    """
    with_root = overrides
    if "data=local" in overrides and not any(text.startswith("data.root=") for text in overrides):
        with_root = (*overrides, f"data.root={NO_ROOT}")
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = validate(compose("config", list(with_root)))
    except HydraException as error:
        raise UserError(f"{' '.join(overrides)}: {hydra_sentence(error)}") from error
    kind: Kind = config["task"]["kind"]
    return Setting(with_root, config, kind, setting_key(config, kind))


def check_launcher(overrides: tuple[str, ...]) -> None:
    """Whether Hydra has a launcher.

    Raises:
        UserError: for an unknown launcher, or an unknown key of one.
    """
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            compose("config", list(overrides), return_hydra_config=True)
    except HydraException as error:
        hint = "; the others come with the extras sweep and slurm" if "hydra/launcher" in str(error) else ""
        raise UserError(f"{hydra_sentence(error)}{hint}") from error
