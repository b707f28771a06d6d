"""The paper's values, by dotted keys into ``experiments/paper.yaml``."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_tasks.errors import UserError
from elmo_tasks.places import EXPERIMENTS

PAPER = EXPERIMENTS / "paper.yaml"


@dataclass(frozen=True)
class Value:
    """A number that the paper prints.

    Args:
        v: the number.
        sd: its standard deviation over seeds, where printed.
        verified: whether a copy of the paper, or a source by its authors, shows it.
        system: the system with the previous best score.
    """

    v: float
    sd: float | None = None
    verified: bool = True
    system: str = ""

    def __str__(self) -> str:
        return f"{self.v:g}" + (f" ± {self.sd:g}" if self.sd is not None else "") + ("" if self.verified else "?")


def value(key: str) -> Value:
    """A value of the paper.

    Args:
        key: ``table_3_placement_dev.snli.input_only``.

    Raises:
        UserError: if the file has no number under this key.
    """
    found = find_value(key)
    if found is None:
        raise UserError(f"{PAPER}: no value under {key}; expected a mapping with a number v")
    return found


def find_value(key: str) -> Value | None:
    """A value of the paper, if the file has one."""
    node: Any = _read(PAPER)
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or not isinstance(node.get("v"), (int, float)):
        return None
    return Value(node["v"], node.get("sd"), node.get("verified", True), node.get("system", ""))


@functools.cache
def _read(path: Path) -> Any:
    try:
        return OmegaConf.to_container(OmegaConf.load(path))
    except (OSError, ValueError, OmegaConfBaseException) as error:
        raise UserError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from error
