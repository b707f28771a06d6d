"""The keys of the configuration that a declaration sets itself, which the command line must not set."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.tables.declare import Declaration


def refuse_declared(declarations: tuple[Declaration, ...], overrides: tuple[str, ...]) -> None:
    """Refuse an override that the declaration itself sets in some cells.

    Raises:
        UserError: naming the override and the table.
    """
    for declared in declarations:
        keys = _declared_keys(declared)
        for text in overrides:
            key = key_of_override(text)
            if key in keys or (key == "elmo" and any(other.startswith("elmo.") for other in keys)):
                other = "elmo.*" if key == "elmo" else key
                raise UserError(f"{text}: {declared.title} sets {other} itself; leave it out, or write a declaration")


def _declared_keys(part: Any) -> set[str]:
    """The keys of all overrides in a declaration, or in a part of one."""
    if isinstance(part, tuple):
        return set().union(*map(_declared_keys, part))
    if not is_dataclass(part):
        return set()
    own = {key_of_override(text) for text in getattr(part, "overrides", ())}
    return own.union(*map(_declared_keys, vars(part).values()))


def key_of_override(text: str) -> str:
    """``elmo.mix`` for ``elmo.mix=last``."""
    return text.partition("=")[0].lstrip("+~")
