"""Configurations as flat mappings, and in what several of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elmo_tasks.config.identity import short_digest


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping by dotted key."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, dict) and value else {name: value}
    return found


def differing(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The part of each flat mapping in which not all of them agree; a key that one lacks counts as None."""
    keys = sorted({key for setting in settings for key in setting})
    told_apart = [key for key in keys if len({short_digest(setting.get(key)) for setting in settings}) > 1]
    return [{key: setting.get(key) for key in told_apart} for setting in settings]
