"""What makes two runs runs of one setting: everything that can change a score but the seed."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from elmo_tasks.config import validate
from elmo_tasks.errors import UserError, hydra_sentence
from elmo_tasks.identity import science
from elmo_tasks.results import fingerprint, task_in_force

REPO = Path(__file__).parents[2]
NO_ROOT = "DIR"
"""Stands for ``data.root`` where none was given: rows are found without it, runs are not made."""


@dataclass(frozen=True)
class Setting:
    """A cell's configuration.

    Args:
        overrides: of the command line that makes it.
        config: composed and checked.
        key: fingerprint of :func:`identity`.
    """

    overrides: tuple[str, ...]
    config: dict[str, Any]
    key: str

    @property
    def trains(self) -> bool:
        """Whether there is a model to train."""
        return "model" in self.config["task"]


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
        with initialize_config_dir(str(REPO / "conf"), version_base="1.3"):
            config = validate(compose("config", list(with_root)))
    except HydraException as error:
        raise UserError(f"{' '.join(overrides)}: {hydra_sentence(error)}") from error
    return Setting(with_root, config, fingerprint(identity(config)))


def check_launcher(overrides: tuple[str, ...]) -> None:
    """Whether Hydra has a launcher.

    Raises:
        UserError: for an unknown launcher, or an unknown key of one.
    """
    try:
        with initialize_config_dir(str(REPO / "conf"), version_base="1.3"):
            compose("config", list(overrides), return_hydra_config=True)
    except HydraException as error:
        hint = "; the others come with the extras sweep and slurm" if "hydra/launcher" in str(error) else ""
        raise UserError(f"{hydra_sentence(error)}{hint}") from error


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """What of a configuration, composed today or stored in a row, tells its setting from others.

    That is what makes a run's fingerprint, without the seed and without the digests of data and biLM (rows have
    those, see ``cells.py``); in their place the biLM's name, sizes and policy.

    Raises:
        KeyError: if the configuration of a row lacks a part.
    """
    part = science(config, {})
    del part["seed"]
    return part | {"task": task_in_force(part["task"]), "bilm": _bilm(config)}


def _bilm(config: dict[str, Any]) -> dict[str, Any] | None:
    if "elmo" in config["task"] and config["elmo"]["placement"] == "none":
        return None
    bilm = config["bilm"]
    own = {key: bilm[key] for key in ("name", "state", "options")}
    own["warm_text"] = bilm.get("warm_text")  # other encoders have none
    own |= {"dtype": bilm["store"]["dtype"], "bundled": bilm["path"] is None}
    precision = bilm.get("precision", "float32")  # the only one before there was a choice
    return own if precision == "float32" else own | {"precision": precision}
