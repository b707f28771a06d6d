"""Objects of the classes that a configuration names; the only caller of Hydra's instantiate."""

from __future__ import annotations

from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from elmo_tasks.configuration.check import check_constructor
from elmo_tasks.configuration.targets import OPTIMIZERS, TARGET, check_classes, find_class
from elmo_tasks.errors import UserError, shortened


def make(node: dict[str, Any], **parts: Any) -> Any:
    """Hydra's ``instantiate``, except that an error of the constructor is raised as it is.

    Raises:
        UserError: from the constructor, or if it does not take the values.
    """
    try:
        return instantiate(node, **parts)
    except InstantiationException as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        reason = shortened(str(error.__cause__ or error), 160)
        raise UserError(f"{node[TARGET]} does not take what the configuration gives it ({reason})") from error


def check_nodes(cfg: dict[str, Any]) -> None:
    """See that the classes that a task names exist and accept their values.

    An optimizer is tried instead (:func:`elmo_tasks.assembly.check_optimizer`): torch.optim does not annotate ranges.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    check_classes(cfg, cfg["packages"])
    for name, node in cfg["task"].items():
        if isinstance(node, dict) and TARGET in node:
            key = f"task.{name}"
            found = find_class(f"{key}.{TARGET}", node[TARGET], cfg["packages"])
            if not node[TARGET].startswith(f"{OPTIMIZERS}."):
                check_constructor(key, node, found)
