"""Objects of the classes that a configuration names; the only caller of Hydra's instantiate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from elmo_tasks.configuration.check import check_constructor
from elmo_tasks.configuration.targets import MOVED, OPTIMIZERS, TARGET, check_classes, find_class
from elmo_tasks.errors import UserError, quoted, shortened


def make(node: dict[str, Any], **parts: Any) -> Any:
    """Hydra's ``instantiate``, except that an error of the constructor is raised as it is.

    Raises:
        UserError: from the constructor, or if no class is named or it does not take the values.
    """
    if TARGET not in node:
        raise UserError(f"{TARGET}, the name of a class, is missing in a section with {quoted(list(node))}")
    try:
        return instantiate({**node, TARGET: MOVED.get(node[TARGET], node[TARGET])}, **parts)
    except InstantiationException as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        reason = shortened(str(error.__cause__ or error), 160)
        raise UserError(f"{node[TARGET]} does not take what the configuration gives it ({reason})") from error


def check_nodes(cfg: dict[str, Any], packages: Sequence[str]) -> None:
    """Check that every class that a task names exists and accepts the values given for it.

    An optimizer is tried instead (:func:`elmo_tasks.assembly.check_optimizer`): torch.optim does not annotate ranges.

    Args:
        cfg: plain containers.
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
