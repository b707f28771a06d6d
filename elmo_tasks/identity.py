"""What of a configuration makes a run another one, and what a run is called."""

from __future__ import annotations

from typing import Any

from elmo_tasks.config import SHARDS
from elmo_tasks.results import elmo_in_force
from elmo_tasks.rules import is_all


def science(cfg: dict[str, Any], digests: dict[str, Any]) -> dict[str, Any]:
    """The part of a resolved configuration that can change a score; it makes the run's fingerprint.

    Args:
        cfg: what :func:`elmo_tasks.config.validate` returned.
        digests: of the biLM (if it takes part, or if its training starts from one) and of the data files, in place of
            their paths.
    """
    part: dict[str, Any] = {"task": cfg["task"], "seed": cfg["seed"], "scale": cfg["scale"]["name"], **digests}
    part["data"] = {"name": cfg["data"]["name"], "fraction": cfg["data"]["fraction"]}
    if "model" in cfg["task"]:
        part["training"] = _training_in_force(cfg["trainer"])
    if "elmo" in cfg["task"]:
        if "model" in cfg["task"]:
            part["words"] = cfg["words"]
        part["elmo"] = elmo_in_force(cfg["elmo"])
        part["task"] = {key: value for key, value in cfg["task"].items() if key != "elmo"}
    else:
        part["task"] = {**cfg["task"], "lm": {**cfg["task"]["lm"], "init": None}}
        part["bilm_options"] = cfg["bilm"]["options"]
    return part


def _training_in_force(trainer: dict[str, Any]) -> dict[str, Any]:
    """What of a configuration's section ``trainer`` can change a score.

    How often and on how much dev text a checkpoint is chosen is named only where it is not every epoch and all of it:
    that went without saying before, and rows of that time keep their fingerprints.
    """
    part = {key: trainer[key] for key in ("max_epochs", "max_steps", "patience", "precision")}
    if trainer["val_check_interval"] is not None:
        part["val_check_interval"] = trainer["val_check_interval"]
    if not is_all(trainer["limit_val_batches"]):
        part["limit_val_batches"] = trainer["limit_val_batches"]
    return part


def slug(cfg: dict[str, Any]) -> str:
    """The readable middle of a run's name."""
    words = [cfg["data"]["name"], cfg["scale"]["name"]]
    if cfg["data"]["fraction"] != 1:
        words.append(f"f{cfg['data']['fraction']:g}")
    if "elmo" in cfg["task"]:
        elmo = cfg["elmo"]
        words.append(elmo["placement"])
        if elmo["placement"] != "none":
            words += [cfg["bilm"]["name"], elmo["mix"]]
            words += [f"l{elmo['lambda']:g}"] if elmo["mix"] == "scalar" else []
            words += ["g1"] if elmo["gamma"] == "one" else []
    else:
        words.append(cfg["bilm"]["name"])
        words += [text] if (text := cfg["task"]["lm"]["text"]) != SHARDS else []
    return "-".join(words)
