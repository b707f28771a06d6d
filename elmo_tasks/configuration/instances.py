"""Objects of the classes that a configuration names; the only caller of Hydra's instantiate."""

from __future__ import annotations

from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from elmo_tasks.configuration.check import check_constructor
from elmo_tasks.configuration.targets import OPTIMIZERS, TARGET, check_classes, class_of
from elmo_tasks.errors import UserError, shortened


def make(node: dict[str, Any], **parts: Any) -> Any:
    """Hydra's instantiate, but that a constructor's own complaint is not wrapped up.

    Raises:
        UserError: from the constructor, or if it does not take the values.
    """
    try:
        return instantiate(node, **parts)
    except InstantiationException as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        said = shortened(str(error.__cause__ or error), 160)
        raise UserError(f"{node[TARGET]} does not take what the configuration gives it ({said})") from error


def check_nodes(cfg: dict[str, Any]) -> None:
    """See that the classes which a task names are there and take the values that stand beside their names.

    An optimizer is tried instead (see :func:`elmo_tasks.assembly.check_optimizer`): torch.optim says little of ranges.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    check_classes(cfg, cfg["packages"])
    for name, node in cfg["task"].items():
        if isinstance(node, dict) and TARGET in node:
            key = f"task.{name}"
            found = class_of(f"{key}.{TARGET}", node[TARGET], cfg["packages"])
            if not node[TARGET].startswith(f"{OPTIMIZERS}."):
                check_constructor(key, node, found)
