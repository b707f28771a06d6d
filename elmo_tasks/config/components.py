"""Objects of the classes that a configuration names with ``_target_``: checked, then made.

A configuration from elsewhere must not run arbitrary code: a class is looked up only below trusted packages, and only
``_target_`` and ``_partial_`` have a meaning of their own.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from elmo_tasks.config.words import ANYTHING, in_words, must_be, unknown_key
from elmo_tasks.errors import UserError, quoted, shortened

TARGET, PARTIAL = "_target_", "_partial_"
OWN = ("elmo_tasks.data", "elmo_tasks.models", "elmo_tasks.metrics", "elmo_tasks.encoders")
OPTIMIZERS = "torch.optim"
MOVED = {
    "elmo_tasks.data.lm.LmData": "elmo_tasks.pretrain.text.LmData",
    "elmo_tasks.models.lm.LanguageModel": "elmo_tasks.pretrain.model.LanguageModel",
}
"""Where classes are now that configurations, and so run ids and rows, name as they were named first."""
METHODS = {
    "reader": ("read_file", "from_json"),
    "model": ("decode", "loss"),
    "metric": ("update", "compute"),
    "optimizer": ("step", "zero_grad"),
    "data": ("read", "counts"),
    "encoder": ("layers", "prepare"),
}
"""The sections that name a class, with methods that tell the intended kind of class from any other."""
LM_METHODS = {"model": ("losses", "sampled_loss"), "data": ("windows", "heldout")}
"""The same of the classes that train a biLM."""
_MAX_DEPTH = 50

Node = Mapping[str, Any]
"""A section with ``_target_``, as plain containers."""


def check_targets(tree: Any, packages: Sequence[str]) -> None:
    """Check that every ``_target_`` of a tree is below a trusted package: these, torch.optim and what the user names.

    Hydra's other reserved keys, such as ``_args_``, are refused. Nothing is imported.

    Args:
        tree: plain containers.
        packages: that the user names on the command line.

    Raises:
        UserError: naming the key.
    """
    for key, name, value in _walk(tree):
        if name == TARGET:
            _check_target(key, value, packages)
        elif re.fullmatch("_.*_", name) and name != PARTIAL:
            raise UserError(f"unknown key {quoted(key)}; of Hydra's own keys only {TARGET} and {PARTIAL} are read")


def _check_target(key: str, target: Any, packages: Sequence[str]) -> None:
    is_name = isinstance(target, str) and re.fullmatch(r"\w+(\.\w+)+", target)
    if not is_name or not _is_below(target, packages):
        raise UserError(
            f"{key} must be a class below {', '.join((*OWN, OPTIMIZERS, *packages))}, found {quoted(target)}; "
            "packages=[NAME] allows those of another package"
        )


def _is_below(name: str, packages: Sequence[str], own: Sequence[str] = (*OWN, OPTIMIZERS)) -> bool:
    return name.startswith(tuple(f"{package}." for package in (*own, *packages)))


def check_classes(tree: Any, packages: Sequence[str]) -> None:
    """As :func:`check_targets`; also import each class, which takes seconds because of PyTorch, and check its kind.

    Classes of a package that the user names may stand within the values of another class; those of this package and of
    torch.optim only where they are meant to.

    Raises:
        UserError: naming the key.
    """
    check_targets(tree, packages)
    nodes = {key.removesuffix(f".{TARGET}"): value for key, name, value in _walk(tree) if name == TARGET}
    for key, target in nodes.items():
        found = find_class(f"{key}.{TARGET}", target, packages)
        place = key.rpartition(".")[2]
        methods = METHODS.get(place, ())
        within = any(key.startswith(f"{other}.") for other in nodes)
        if _is_below(target, packages, ()) and (within or not methods):
            continue
        if within or not any(_has_all(found, names) for names in (methods, LM_METHODS.get(place, ()))):
            expected = f"one with the methods {', '.join(methods)}" if methods and not within else "no class there"
            raise UserError(f"{key}.{TARGET}={target}: not a class for this place; expected {expected}")
    for key, name, value in _walk(tree):
        if name == PARTIAL and value is not (key == f"task.optimizer.{PARTIAL}"):
            raise UserError(f"{key} must be true for task.optimizer and stands nowhere else, found {quoted(value)}")


def _has_all(found: Any, methods: Sequence[str]) -> bool:
    """Whether there are methods to have, and a class has them."""
    return bool(methods) and all(hasattr(_owner(found), name) for name in methods)


def find_class(key: str, target: str, packages: Sequence[str]) -> Callable[..., Any]:
    """Import what a ``_target_`` names: a class, or its method ``load``.

    Raises:
        UserError: if it does not exist, or is not one of the allowed classes.
    """
    _check_target(key, target, packages)
    try:
        found: Callable[..., Any] = resolve_name(MOVED.get(target, target))
    except Exception as error:  # whatever importing it raises
        raise UserError(f"{key}={target}: {_why(target)}") from error
    owner = _owner(found)
    is_class = isinstance(owner, type) and (owner is found or found.__name__ == "load")
    if not is_class or not (target in MOVED or _is_below(f"{owner.__module__}.", packages)):
        raise UserError(f"{key}={target}: not a class of this package, and not one of torch.optim")
    return found


def _owner(found: Any) -> Any:
    """The class of a class method, such as that of ``CoVe.load``; anything else as it is."""
    return getattr(found, "__self__", found)


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


def _walk(tree: Any) -> Iterator[tuple[str, str, Any]]:
    """Every key of a tree, at any depth: dotted, its last part, and its value.

    Raises:
        UserError: for a tree that is nested more deeply than any configuration is.
    """
    left = [("", 0, tree)]
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


def check_values(key: str, node: Node, packages: Sequence[str]) -> None:
    """Check that the class of a node takes the node's values, and so for the nodes within it.

    The values of an optimizer are not looked at: torch.optim does not annotate ranges.

    Args:
        key: of the node, such as ``task.model``.
        node: its values; those that are handed over later are not in it.
        packages: that the user trusts, besides this one.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    constructor = find_class(f"{key}.{TARGET}", node[TARGET], packages)
    if node[TARGET].startswith(f"{OPTIMIZERS}."):
        return
    parameters = inspect.signature(constructor).parameters
    hints = get_type_hints(constructor.__init__ if inspect.isclass(constructor) else constructor, include_extras=True)
    for name, value in _values(node).items():
        if name not in parameters:
            raise UserError(unknown_key(f"{key}.{name}", list(parameters)))
        if _is_node(value):
            check_values(f"{key}.{name}", value, packages)
        else:
            check_value(f"{key}.{name}", value, hints.get(name, Any))


def check_value(key: str, value: Any, annotation: Any) -> None:
    """Check one plain value against its annotation.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    if not _accepts(annotation, value):
        raise UserError(must_be(key, annotation, value))


def _accepts(annotation: Any, value: Any) -> bool:
    """Whether a plain value is of an annotation; one that is not about plain values accepts everything."""
    if in_words(annotation) == ANYTHING:
        return True
    try:
        _adapter(annotation).validate_json(json.dumps(value))  # JSON has lists where an annotation says tuple
    except ValidationError:
        return False
    return bool(value != [])


@functools.cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    config = ConfigDict(strict=True, allow_inf_nan=False, str_min_length=1, arbitrary_types_allowed=True)
    return TypeAdapter(annotation, config=config)


def make(node: Node, packages: Sequence[str] = (), /, **parts: Any) -> Any:
    """Call the class of a node with the node's values, nested nodes first; with ``_partial_``, prepare the call.

    Args:
        node: checked or not; a class outside of the trusted packages is refused here too.
        packages: that the user trusts, besides this one.
        parts: further arguments, and others in place of the node's values.

    Raises:
        UserError: from the constructor, or if it does not take the values.
    """
    constructor = find_class(TARGET, node[TARGET], packages)
    values = {name: _made(value, packages) for name, value in _values(node).items()} | parts
    if node.get(PARTIAL):
        return functools.partial(constructor, **values)
    try:
        return constructor(**values)
    except UserError:
        raise
    except Exception as error:
        reason = shortened(str(error), 160)
        raise UserError(f"{node[TARGET]} does not take what the configuration gives it ({reason})") from error


def _made(value: Any, packages: Sequence[str]) -> Any:
    """A value with objects in place of the nodes; containers are copied."""
    if isinstance(value, dict):
        return make(value, packages) if _is_node(value) else {k: _made(each, packages) for k, each in value.items()}
    return [_made(each, packages) for each in value] if isinstance(value, list) else value


def _is_node(value: Any) -> bool:
    return isinstance(value, dict) and TARGET in value


def _values(node: Node) -> dict[str, Any]:
    return {name: value for name, value in node.items() if name not in (TARGET, PARTIAL)}
