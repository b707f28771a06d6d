"""Objects of the classes that a configuration names; the only caller of Hydra's instantiate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from elmo_tasks.configuration.check import check_constructor
from elmo_tasks.configuration.targets import OPTIMIZERS, PARTIAL, TARGET, check_classes, find_class
from elmo_tasks.errors import UserError, quoted, shortened


def make(node: dict[str, Any], /, **parts: Any) -> Any:
    """The object that a section describes; with ``_partial_``, a function that makes it of what is still missing.

    Hydra finds the class and never sees the values, since it would resolve texts with ``${...}`` in them, which can
    name classes. The constructor takes the values as they are; an error that it raises is raised as it is.

    Args:
        node: plain containers, checked with :func:`check_nodes`.
        parts: further arguments.

    Raises:
        UserError: from the constructor, or if no class is named or it does not take the values.
    """
    if TARGET not in node:
        raise UserError(f"{TARGET}, the name of a class, is missing in a section with {quoted(list(node))}")
    try:
        constructor = instantiate({TARGET: node[TARGET], PARTIAL: True})
        values = {name: _made(value) for name, value in node.items() if name not in (TARGET, PARTIAL)}
        constructor = partial(constructor, **values)
        return partial(constructor, **parts) if node.get(PARTIAL) else constructor(**parts)
    except UserError:
        raise
    except Exception as error:  # whatever the constructor raises
        cause = error.__cause__ if isinstance(error, InstantiationException) else None
        reason = shortened(str(cause or error), 160)
        raise UserError(f"{node[TARGET]} does not take what the configuration gives it ({reason})") from error


def _made(value: Any) -> Any:
    """A value with objects in place of the sections that name classes; containers are copied."""
    if isinstance(value, dict):
        return make(value) if TARGET in value else {name: _made(part) for name, part in value.items()}
    return [_made(part) for part in value] if isinstance(value, list) else value


def check_nodes(cfg: dict[str, Any], packages: Sequence[str]) -> None:
    """Check that every class that a configuration names may be made, and that those of a task accept their values.

    An optimizer is tried instead (:func:`elmo_tasks.assembly.check_optimizer`): torch.optim does not annotate ranges.

    Args:
        cfg: plain containers, the very ones that :func:`make` will be given.
        packages: that the user trusts, besides this one.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    check_classes(cfg, packages)
    for key, node in _nodes(cfg["task"], "task"):
        found = find_class(f"{key}.{TARGET}", node[TARGET], packages)
        if not node[TARGET].startswith(f"{OPTIMIZERS}."):
            check_constructor(key, node, found)


def _nodes(section: dict[str, Any], key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The parts of a section, at any depth, that name a class, with their keys."""
    for name, part in section.items():
        if isinstance(part, dict) and TARGET in part:
            yield f"{key}.{name}", part
        elif isinstance(part, dict):
            yield from _nodes(part, f"{key}.{name}")
