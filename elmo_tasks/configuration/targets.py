"""Which classes a configuration may name with ``_target_``: one from elsewhere must not run arbitrary code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

from elmo_tasks.errors import UserError, quoted

TARGET, PARTIAL = "_target_", "_partial_"
OWN = ("elmo_tasks.data", "elmo_tasks.models", "elmo_tasks.metrics", "elmo_tasks.encoders")
OPTIMIZERS = "torch.optim"
METHODS = {
    "reader": ("read_file", "from_json"),
    "model": ("decode", "loss"),
    "metric": ("update", "compute"),
    "optimizer": ("step", "zero_grad"),
    "data": ("read", "counts"),
    "encoder": ("layers", "prepare"),
}
"""The sections that name a class, with methods that tell the intended kind of class from any other."""
_MAX_DEPTH = 50


def check_targets(config: Any, packages: Sequence[str]) -> None:
    """Check that every ``_target_`` may be called: a class, or its method ``load``, of a trusted package.

    Trusted are this package, torch.optim and what the user names. Hydra's other reserved keys, such as ``_args_``, are
    refused.

    Args:
        config: plain containers.
        packages: what ``packages`` lists on the command line.

    Raises:
        UserError: naming the key.
    """
    allowed = (*OWN, OPTIMIZERS, *packages)
    for key, name, value in _walk(config):
        if name.startswith("_") and name.endswith("_") and name not in (TARGET, PARTIAL):
            raise UserError(f"unknown key {quoted(key)}; of Hydra's own keys only {TARGET} and {PARTIAL} are read")
        if name == TARGET and not (
            isinstance(value, str) and re.fullmatch(r"\w+(\.\w+)+", value) and _is_below(value, allowed)
        ):
            raise UserError(
                f"{key} must be a class below {', '.join(allowed)}, found {quoted(value)}; "
                "packages=[NAME] allows those of another package"
            )


def check_classes(config: Any, packages: Sequence[str]) -> None:
    """As :func:`check_targets`; also import each class, which takes seconds because of PyTorch, and check its kind.

    Classes of a package that the user names may stand within the values of another class; those of this package and of
    torch.optim only where they are meant to.

    Raises:
        UserError: naming the key.
    """
    check_targets(config, packages)
    targets = [(key.removesuffix(f".{TARGET}"), value) for key, name, value in _walk(config) if name == TARGET]
    for key, target in targets:
        found = find_class(f"{key}.{TARGET}", target, packages)
        section = key.rpartition(".")[2]
        within = any(key.startswith(f"{other}.") for other, _ in targets)
        methods = METHODS.get(section, ())
        if _is_below(target, packages) and (within or not methods):
            continue
        if within or not methods or not all(hasattr(_owner(found), name) for name in methods):
            expected = f"one with the methods {', '.join(methods)}" if methods and not within else "no class there"
            raise UserError(f"{key}.{TARGET}={target}: not a class for this place; expected {expected}")
    for key, name, value in _walk(config):
        if name == PARTIAL and value is not (key == f"task.optimizer.{PARTIAL}"):
            raise UserError(f"{key} must be true for task.optimizer and stands nowhere else, found {quoted(value)}")


def find_class(key: str, target: str, packages: Sequence[str]) -> Any:
    """Import what a ``_target_`` names.

    Raises:
        UserError: if it does not exist, or is not one of the allowed classes.
    """
    try:
        found = resolve_name(target)
    except Exception as error:  # whatever importing it raises
        raise UserError(f"{key}={target}: {_why(target)}") from error
    owner = _owner(found)
    is_class = isinstance(owner, type) and (owner is found or found.__name__ == "load")
    if not is_class or not _is_below(f"{owner.__module__}.", (*OWN, OPTIMIZERS, *packages)):
        raise UserError(f"{key}={target}: not a class of this package, and not one of torch.optim")
    return found


def _owner(found: Any) -> Any:
    """The class of a class method, such as that of ``CoVe.load``; anything else as it is."""
    return getattr(found, "__self__", found)


def _is_below(name: str, packages: Iterable[str]) -> bool:
    return name.startswith(tuple(f"{package}." for package in packages))


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


def _walk(config: Any) -> Iterator[tuple[str, str, Any]]:
    """Every key of a configuration, at any depth: dotted, its last part, and its value.

    Raises:
        UserError: for a configuration that is nested more deeply than any is.
    """
    left = [("", 0, config)]
    while left:
        prefix, depth, section = left.pop()
        if depth > _MAX_DEPTH:
            raise UserError(f"{prefix.split('.')[0]}: sections that are nested too deeply")
        parts = section.items() if isinstance(section, dict) else enumerate(section)
        inner = []
        for name, value in parts:
            if isinstance(section, dict):
                yield f"{prefix}{name}", str(name), value
            if isinstance(value, (dict, list, tuple)):
                inner.append((f"{prefix}{name}.", depth + 1, value))
        left += reversed(inner)
