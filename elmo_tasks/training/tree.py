"""A tree of containers, plain values and tensors as one safetensors file with a digest, without pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.errors import UserError, shortened
from elmo_tasks.tensors import read_metadata, read_tensors, write_tensors

RESTART = "force=true restarts training from scratch"
"""What messages about a damaged state advise."""


def write_tree(path: Path, tree: dict[str, Any]) -> None:
    """Write a state of training in one rename: everything but tensors, and a digest, is in the file's header.

    Raises:
        UserError: if the file cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_to_json(tree, tensors))
    write_tensors(path, tensors, "the state", {"state": text, "digest": _digest(text, tensors)})


def read_tree(path: Path, remedy: str = RESTART) -> dict[str, Any]:
    """What :func:`write_tree` wrote.

    Raises:
        UserError: if the file is missing or damaged; the sentence ends in the ``remedy``.
    """
    with advising(path, remedy):
        tensors, metadata = read_tensors(path), read_metadata(path)
        if metadata.get("digest") != _digest(metadata.get("state", ""), tensors):
            raise ValueError("its contents do not have its digest")
        tree: dict[str, Any] = _from_json(json.loads(metadata["state"]), tensors)
    return tree


@contextmanager
def advising(path: Path, remedy: str = RESTART) -> Iterator[None]:
    """Errors of a damaged file as one sentence that says what to do."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{error}; {remedy}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{path}: damaged ({shortened(str(error), 100)}); {remedy}") from error


def _digest(text: str, tensors: dict[str, Tensor]) -> str:
    """SHA-256 of a state's JSON and of the bytes of its tensors, in the order of their names."""
    sha = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        sha.update(tensors[name].flatten().view(torch.uint8).numpy().data)
    return sha.hexdigest()


def _to_json(value: Any, tensors: dict[str, Tensor]) -> Any:
    """JSON for a tree of containers, numbers and texts; its tensors go to ``tensors`` under numbers."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if isinstance(value, dict):  # pairs, since keys may be numbers
        return {"dict": [[_to_json(key, tensors), _to_json(part, tensors)] for key, part in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_to_json(part, tensors) for part in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a state of type {type(value).__name__} cannot be saved")


def _from_json(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {_from_json(key, tensors): _from_json(part, tensors) for key, part in content}
    parts = [_from_json(part, tensors) for part in content]
    return parts if kind == "list" else tuple(parts)
