"""The state from which training resumes: safetensors files, and ``state.json``, which names them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from elmo_tasks.errors import UserError
from elmo_tasks.files import write_json
from elmo_tasks.tensors import write_tensors

INDEX = "state.json"
_FORMAT = 1
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
        files[path.name] = _digest(path)
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
    try:
        content = json.loads(index.read_text("utf-8"))
        if content["format"] != _FORMAT:
            raise UserError(f"{index}: format {content['format']!r}, but this version reads format {_FORMAT}")
        pieces: dict[str, list[Tensor]] = {name: [] for name in content["shapes"]}
        for name, digest in content["files"].items():
            if _digest(folder / name) != digest:
                raise UserError(f"{folder / name}: damaged or of another state than {INDEX} says")
            for key, value in sorted(load_file(folder / name).items()):
                pieces[key.rpartition("@")[0]].append(value)
        tensors = {name: torch.cat(pieces[name]).view(shape) for name, shape in content["shapes"].items()}
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise UserError(f"{index}: no state that can be read ({error})") from error
    return tensors, content["about"]


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


def _digest(path: Path) -> str:
    sha = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sha.update(chunk)
    return sha.hexdigest()
