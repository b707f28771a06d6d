"""Checks of plain values against annotations: of a section of the configuration, or of a constructor."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from elmo_tasks.configuration.rules import find_rule
from elmo_tasks.errors import UserError, quoted, shortened

_OWN = ("_target_", "_partial_")  # Hydra's


def check_section(section: type, values: Any, prefix: str = "", *, complete: bool = True) -> None:
    """Check the values of a section: no key is missing or unknown, each value has the type and range of its key.

    Args:
        section: a dataclass of :mod:`elmo_tasks.configuration.sections`.
        values: plain containers.
        prefix: of the keys in messages, such as ``trainer.``.
        complete: whether all keys must be there and no others; else only the values of those that are there count.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    _expect_section(values, prefix)
    hints = {name.rstrip("_"): hint for name, hint in get_type_hints(section, include_extras=True).items()}
    optional = {field.name.rstrip("_") for field in fields(section) if field.default is not MISSING}
    if complete:
        check_keys(values, hints, prefix)
    for name, hint in hints.items():
        if name in values:
            check_value(f"{prefix}{name}", values[name], hint, complete)
        elif complete and name not in optional:
            expected = "" if hint is Any else f"; it must be {find_rule(hint)[0]}"
            raise UserError(f"{prefix}{name} is missing{expected}")


def check_constructor(key: str, node: dict[str, Any], constructor: Callable[..., Any]) -> None:
    """Check that a node of the configuration has values that a constructor takes.

    Args:
        key: of the node, such as ``task.model``.
        node: its values; those that are handed over later are not in it.
        constructor: of the class that the node names.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    parameters = inspect.signature(constructor).parameters
    hints = get_type_hints(constructor.__init__ if inspect.isclass(constructor) else constructor, include_extras=True)
    values = {name: value for name, value in node.items() if name not in _OWN}
    check_keys(values, parameters, f"{key}.")
    for name, value in values.items():
        check_value(f"{key}.{name}", value, hints.get(name, Any))


def check_keys(values: Any, known: Iterable[str], prefix: str) -> None:
    """Check that a section has no other keys than some known ones.

    Raises:
        UserError: naming the first that is unknown, or if the values are no section.
    """
    _expect_section(values, prefix)
    names = list(known)
    for name in values:
        if name not in names:
            choices = shortened(", ".join(names), 200)
            raise UserError(f"unknown key {quoted(f'{prefix}{name}')}; expected one of {choices}")


def _expect_section(values: Any, prefix: str) -> None:
    if not isinstance(values, dict):
        raise UserError(f"{prefix.rstrip('.')} must be a section with keys, found {quoted(values)}")


def check_value(key: str, value: Any, hint: Any, complete: bool = True) -> None:
    """Check one value against its annotation (the values of a section against those of its keys).

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    section = next((each for each in (hint, *get_args(hint)) if is_dataclass(each) and isinstance(each, type)), None)
    if section is not None:
        if value is not None or section is hint:
            check_section(section, value, f"{key}.", complete=complete)
        return
    expected, is_right = find_rule(hint)
    if not is_right(value):
        finite = "finite, " if isinstance(value, float) and not math.isfinite(value) else ""
        raise UserError(f"{key} must be {finite}{expected}, found {quoted(value)}")
