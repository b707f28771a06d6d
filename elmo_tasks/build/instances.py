"""Objects of the classes that a configuration names; the only caller of Hydra's instantiate."""

from __future__ import annotations

from typing import Any

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from elmo_tasks.errors import UserError


def make(node: dict[str, Any], **parts: Any) -> Any:
    """Hydra's instantiate, but that a constructor's own complaint is not wrapped up.

    Raises:
        UserError: from the constructor.
    """
    try:
        return instantiate(node, **parts)
    except InstantiationException as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from None
        raise
