"""What tables read of the configuration in a row. The rest of it may be anything."""

from __future__ import annotations

from types import NoneType
from typing import Any

SECTIONS: dict[str, dict[str, tuple[type, ...]]] = {
    "task": {},
    "data": {},
    "words": {"path": (str, NoneType)},
    "bilm": {"name": (str,), "path": (str, NoneType), "store": (dict,)},
    "elmo": {"placement": (str,), "lambda": (int, float)},
    "trainer": {},
}
"""Sections, with the types of some of their keys."""


def check_config(config: dict[str, Any], *, learned: bool, encoder: bool) -> None:
    """Check what tables read.

    Args:
        config: of a finished run.
        learned: whether the run learned a mix, so that it has a lambda.
        encoder: whether it used or made a biLM, or another encoder, so that this has a name.

    Raises:
        ValueError: naming the first key that is missing or of another type.
    """
    for name, keys in SECTIONS.items():
        section = config.get(name, {})
        if not isinstance(section, dict):
            raise ValueError(f"config.{name} must be a section, found {section!r:.40}")
        for key, types in keys.items():
            if key in section and not isinstance(section[key], types):
                raise ValueError(f"config.{name}.{key} cannot be {section[key]!r:.40}")
    for name, key, needed in (("elmo", "lambda", learned), ("bilm", "name", encoder)):
        if needed and key not in config.get(name, {}):
            raise ValueError(f"config.{name}.{key} is missing")
