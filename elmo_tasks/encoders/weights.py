"""Reading weights from safetensors: which file, and whether it holds what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from elmo_tasks.errors import UserError


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
            "run code: README, section 'Other encoders', has the line that converts it"
        )
    return path


def read_tensors(path: Path, shapes: Mapping[str, torch.Size], sizes: str) -> dict[str, Tensor]:
    """The tensors of a file by the last part of their names (``weight_ih_l0`` of ``rnn1.weight_ih_l0``).

    Args:
        path: a safetensors file.
        shapes: the tensors that are wanted.
        sizes: what gave their shapes, for messages.

    Raises:
        UserError: if the file is damaged, a tensor is missing or there twice, has another shape, or is not finite.
    """
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: damaged or not a safetensors file ({error})") from error
    found: dict[str, Tensor] = {}
    for full_name, value in stored.items():
        name = full_name.rpartition(".")[2]
        if name in found:
            raise UserError(f"{path}: two tensors are named {name!r}, one of them {full_name!r}")
        found[name] = value
    for name, shape in shapes.items():
        if name not in found:
            raise UserError(f"{path}: tensor {name!r} is missing; {sizes} ask for it")
        if found[name].shape != shape:
            raise UserError(
                f"{path}: {name!r} has shape {tuple(found[name].shape)}, but {sizes} ask for {tuple(shape)}"
            )
        if not torch.isfinite(found[name]).all():
            raise UserError(f"{path}: {name!r} holds values that are not finite")
    return found
