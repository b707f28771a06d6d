"""The weights of an encoder in a safetensors file: which file, and whether it holds what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from elmo_tasks.errors import UserError, quoted
from elmo_tasks.tensors import read_shapes, read_tensors


def find_file(path: Path) -> Path:
    """The safetensors file at a path: itself, or the one of a folder.

    Raises:
        UserError: if there is none, or more than one.
    """
    if path.is_dir():
        found = sorted(path.glob("*.safetensors"))
        if len(found) != 1:
            names = ", ".join(file.name for file in found) or "none"
            raise UserError(f"bilm.path={path}: expected exactly one file *.safetensors, found {names}")
        return found[0]
    if not path.is_file():
        raise UserError(f"bilm.path={path}: no such file; expected weights as .safetensors, or a folder with them")
    if path.suffix != ".safetensors":
        raise UserError(
            f"bilm.path={path}: expected weights as .safetensors; a pickle (.pth, .pt, .bin) is not read, since it can "
            "run code: docs/manual.md, section 'Other encoders', has the line that converts it"
        )
    return path


def read_parameters(path: Path, shapes: Mapping[str, torch.Size], sizes: str) -> dict[str, Tensor]:
    """The tensors of a file by the last part of their names (``weight_ih_l0`` of ``rnn1.weight_ih_l0``).

    Args:
        path: a safetensors file.
        shapes: the tensors that are wanted.
        sizes: what gave their shapes, for messages.

    Raises:
        UserError: if the file is damaged, a tensor is missing or there twice, has another shape, or is not finite.
    """
    full_names: dict[str, str] = {}
    stored = read_shapes(path)
    for full_name in stored:
        name = full_name.rpartition(".")[2]
        if name in full_names:
            raise UserError(f"{path}: two tensors are named {quoted(name)}, one of them {quoted(full_name)}")
        full_names[name] = full_name
    for name, shape in shapes.items():
        if name not in full_names:
            raise UserError(f"{path}: tensor {name!r} is missing; {sizes} ask for it")
        found = stored[full_names[name]]
        if found != tuple(shape):
            raise UserError(f"{path}: {name!r} has shape {found}, but {sizes} ask for {tuple(shape)}")
    tensors = read_tensors(path)
    for name in shapes:
        if not torch.isfinite(tensors[full_names[name]]).all():
            raise UserError(f"{path}: {name!r} holds values that are not finite")
    return {name: tensors[full_name] for name, full_name in full_names.items()}
