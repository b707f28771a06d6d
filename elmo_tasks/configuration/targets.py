"""Which classes a configuration may name with ``_target_``: one from elsewhere must not run arbitrary code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

from elmo_tasks.errors import UserError, quoted

TARGET = "_target_"
OWN = ("elmo_tasks.data", "elmo_tasks.models", "elmo_tasks.metrics", "elmo_tasks.encoders")
OPTIMIZERS = "torch.optim"
MOVED = {
    "elmo_tasks.data.lm.LmData": "elmo_tasks.pretrain.text.LmData",
    "elmo_tasks.models.lm.LanguageModel": "elmo_tasks.pretrain.model.LanguageModel",
}
"""Where classes are now that configurations, and so run ids and rows, name as they were named first."""


def check_targets(config: Any, packages: Sequence[str]) -> None:
    """Check that every ``_target_`` may be called: a class, or its method ``load``, of a trusted package.

    Trusted are this package, torch.optim and what the user names.

    Args:
        config: plain containers.
        packages: what ``packages`` lists.

    Raises:
        UserError: naming the key.
    """
    for key, target in find_targets(config):
        allowed = (*OWN, OPTIMIZERS, *packages)
        if not isinstance(target, str) or not target.startswith(tuple(f"{name}." for name in allowed)):
            raise UserError(
                f"{key} must be a class below {', '.join(allowed)}, found {quoted(target)}; "
                "packages=[NAME] allows those of another package"
            )


def check_classes(config: Any, packages: Sequence[str]) -> None:
    """As :func:`check_targets`, and import each class, which takes seconds because of PyTorch.

    Raises:
        UserError: naming the key.
    """
    check_targets(config, packages)
    for key, target in find_targets(config):
        find_class(key, target, packages)


def find_class(key: str, target: str, packages: Sequence[str]) -> Any:
    """Import what a ``_target_`` names.

    Raises:
        UserError: if it does not exist, or is not one of the allowed classes.
    """
    try:
        found = resolve_name(MOVED.get(target, target))
    except Exception as error:  # whatever importing it raises
        raise UserError(f"{key}={target}: {_why(target)}") from error
    owner = getattr(found, "__self__", found)  # of a class method, such as CoVe.load
    module = str(getattr(owner, "__module__", ""))
    if not isinstance(owner, type) or not f"{module}.".startswith(
        tuple(f"{name}." for name in (*OWN, "elmo_tasks.pretrain", OPTIMIZERS, *packages))
    ):
        raise UserError(f"{key}={target}: not a class of this package, and not one of torch.optim")
    return found


def _why(target: str) -> str:
    """Why a class cannot be imported: it is not there, or its module cannot be imported."""
    module = target.rpartition(".")[0]
    try:
        import_module(module)
    except Exception as error:  # whatever importing it raises
        name = error.name if isinstance(error, ModuleNotFoundError) else None
        if name is None or not f"{module}.".startswith(f"{name}."):
            return f"its module cannot be imported ({type(error).__name__}: {error})"
        if "." not in name:
            return f"there is no package {name}; PYTHONPATH must have the folder that it is in"
    return "there is no such class"


def find_targets(config: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every ``_target_`` with its dotted key."""
    if isinstance(config, dict):
        for key, value in config.items():
            if key == TARGET:
                yield f"{prefix}{key}", value
            else:
                yield from find_targets(value, f"{prefix}{key}.")
    elif isinstance(config, list):
        for k, value in enumerate(config):
            yield from find_targets(value, f"{prefix}{k}.")
