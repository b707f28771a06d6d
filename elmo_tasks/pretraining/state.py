"""The state from which training resumes: safetensors files, and ``state.json``, which names them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.errors import UserError, quoted
from elmo_tasks.files import check_object, read_object, sha256, write_json
from elmo_tasks.tensors import read_tensors, write_tensors

INDEX = "state.json"
_FORMAT = 1
_ABOUT: dict[str, type | tuple[type, ...]] = {
    "updates": int,
    "epoch": (int, float),
    "seconds": (int, float),
    "curve": list,
    "identity": dict,
}
_HEADER_BYTES = 20_000  # bound of a safetensors file's own header here


def save_state(folder: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any], max_bytes: int | None) -> None:
    """Write a state; a process that is killed meanwhile leaves the earlier one.

    Args:
        folder: made if it is missing.
        tensors: on any device.
        about: everything but tensors, as JSON.
        max_bytes: bound of each file; None for one file.

    Raises:
        UserError: if it cannot be written.
    """
    files: dict[str, str] = {}
    for pieces in _in_files(tensors, max_bytes):
        path = folder / f"state-{about['updates']:08}-{len(files):03}.safetensors"
        write_tensors(path, pieces, "the state")
        files[path.name] = sha256(path)
    shapes = {name: list(value.shape) for name, value in tensors.items()}
    content = {"format": _FORMAT, "about": dict(about), "shapes": shapes, "files": files}
    write_json(folder / INDEX, content, remedy="choose another --out")
    for path in folder.glob("state-*.safetensors"):
        if path.name not in files:
            path.unlink()


def load_state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors, on the CPU, and what else was saved.

    Raises:
        UserError: if a file is missing, damaged or of another state.
    """
    index = folder / INDEX
    content = read_object(index, {"format": int, "about": dict, "shapes": dict, "files": dict})
    if content["format"] != _FORMAT:
        raise UserError(f"{index}: format {content['format']}, but this version reads format {_FORMAT}")
    about = check_object(content["about"], f"{index}: about", _ABOUT)
    for name in ("updates", "epoch", "seconds"):
        if not 0 <= about[name] < math.inf:
            raise UserError(f"{index}: about: {name} must be at least 0, found {about[name]}")
    pieces: dict[str, list[Tensor]] = {name: [] for name in content["shapes"]}
    for name, digest in content["files"].items():
        path = folder / name
        if name != path.name:
            raise UserError(f"{index}: {quoted(name)} is not the name of a file beside it")
        found = read_tensors(path)
        if sha256(path) != digest:
            raise UserError(f"{path}: damaged or of another state than {INDEX} says")
        for key, value in sorted(found.items()):
            if (whole := key.rpartition("@")[0]) not in pieces:
                raise UserError(f"{path}: {quoted(key)} is in no tensor of {INDEX}")
            pieces[whole].append(value)
    tensors = {name: _joined(pieces[name], shape, index, name) for name, shape in content["shapes"].items()}
    return tensors, about


def _joined(pieces: list[Tensor], shape: Any, index: Path, name: str) -> Tensor:
    """The pieces of a tensor as one.

    Raises:
        UserError: if they are not those of its shape.
    """
    n_elements = sum(piece.numel() for piece in pieces)
    is_shape = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not pieces or not is_shape or n_elements != math.prod(shape):
        raise UserError(f"{index}: {quoted(name)} must have {quoted(shape)} elements, found {n_elements:,}")
    return torch.cat([piece.flatten() for piece in pieces]).view(shape)


def _in_files(tensors: Mapping[str, Tensor], max_bytes: int | None) -> list[dict[str, Tensor]]:
    """Pieces of flattened tensors, ``name@number``, that fill file after file."""
    files: list[dict[str, Tensor]] = [{}]
    room = limit = (max_bytes or 1 << 62) - _HEADER_BYTES
    for name, value in tensors.items():
        rest, number = value.detach().cpu().contiguous().flatten(), 0
        while number == 0 or len(rest):
            if room < rest.element_size():
                files.append({})
                room = limit
            piece = rest[: room // rest.element_size()]
            files[-1][f"{name}@{number:06}"] = piece.clone()
            room -= piece.numel() * piece.element_size()
            rest, number = rest[len(piece) :], number + 1
    return files
