"""What makes two runs runs of one setting: everything that can change a score but the seed."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException

from elmo_tasks.config import science, validate
from elmo_tasks.errors import UserError, hydra_sentence
from elmo_tasks.results import fingerprint

REPO = Path(__file__).parents[2]
NO_ROOT = "DIR"
"""Stands for ``data.root`` where none was given: rows are found without it, runs are not made."""

# Keys that rows may lack because they are older, and what went without saying then. The rows without a bound on the
# padded tokens of a batch are of SST-5 and NER with 32 sentences to a batch; the longest has 124 tokens, so that the
# bound of today would not have touched them.
_UNSAID: dict[str, Any] = {"schedule": None, "average": None, "batch_tokens": 16384}


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


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """What of a configuration, composed today or stored in a row, tells its setting from others.

    That is what makes a run's fingerprint, without the seed and without the digests of data and biLM (rows have
    those, see ``cells.py``); in their place the biLM's name, sizes and policy. The table of sizes of both scales is
    left out, since the sizes in force stand in the model's own part.

    Raises:
        KeyError: if the configuration of a row lacks a part.
    """
    part = science(config, {})
    task = {key: value for key, value in part["task"].items() if key != "sizes"}
    training = _UNSAID | {key: value for key, value in task["training"].items() if key != "decay"}
    if task["training"].get("decay"):  # what schedule=linear was called before there were others
        training["schedule"] = "linear"
    del part["seed"]
    return part | {"task": task | {"training": training}, "bilm": _bilm(config)}


def _bilm(config: dict[str, Any]) -> dict[str, Any] | None:
    if "elmo" in config["task"] and config["elmo"]["placement"] == "none":
        return None
    bilm = config["bilm"]
    own = {key: bilm[key] for key in ("name", "state", "warm_text", "options")}
    own |= {"dtype": bilm["store"]["dtype"], "bundled": bilm["path"] is None}
    precision = bilm.get("precision", "float32")  # the only one before there was a choice
    return own if precision == "float32" else own | {"precision": precision}
