"""bilm-tf's HDF5 weight layout: which dataset belongs to which parameter, reading and writing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import torch
from torch import Tensor, nn

from elmo_tasks.bilm.hdf5 import new_file, writing
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.errors import UserError

if TYPE_CHECKING:
    from elmo_tasks.bilm.model import BiLM


def find_files(folder: Path) -> tuple[Path, Path]:
    """The one ``*options.json`` and the one ``*weights.hdf5`` of a folder.

    Raises:
        UserError: if the folder, or one of the two, is missing or not unique.
    """
    if not folder.is_dir():
        raise UserError(f"bilm.path={folder}: no such folder; expected one with options.json and weights.hdf5")
    found = []
    for pattern in ("*options.json", "*weights.hdf5"):
        matches = sorted(folder.glob(pattern))
        if len(matches) != 1:
            names = ", ".join(m.name for m in matches) or "none"
            raise UserError(f"bilm.path={folder}: expected exactly one file {pattern}, found {names}")
        found.append(matches[0])
    return found[0], found[1]


def read_weights(bilm: BiLM, path: Path) -> None:
    """Fill a biLM from a weight file.

    Raises:
        UserError: if the file is damaged, a dataset is missing, has no place in this model, has a shape that the
            options do not give, or holds values that are not finite.
    """
    try:
        with h5py.File(path, "r") as file, torch.no_grad():
            datasets = dict(_datasets(bilm))
            for name in _layers_in(file):
                if name not in datasets:
                    raise UserError(f"{path}: {name!r} has no place: the options ask for {_sizes(bilm.options)}")
            for name, view in datasets.items():
                if name not in file:
                    raise UserError(f"{path}: dataset {name!r} is missing; the options ask for {_sizes(bilm.options)}")
                values = np.asarray(file[name], dtype=np.float32)
                if values.shape != tuple(view.shape):
                    raise UserError(
                        f"{path}: {name!r} has shape {values.shape}, but the options ask for {tuple(view.shape)} "
                        f"({_sizes(bilm.options)})"
                    )
                if not np.isfinite(values).all():
                    raise UserError(f"{path}: {name!r} holds values that are not finite")
                view.copy_(torch.from_numpy(values))
    except (OSError, KeyError, RuntimeError) as error:
        raise UserError(f"{path}: damaged or not an HDF5 file ({error})") from error


def write_weights(bilm: BiLM, folder: Path, dtype: str = "float32") -> None:
    """Write ``options.json`` and ``weights.hdf5``; each file appears whole or not at all.

    Raises:
        UserError: if they cannot be written.
    """
    options = folder / f".options.{os.getpid()}.tmp"
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with writing(folder):
            options.write_text(json.dumps(bilm.options.to_json(), indent=2) + "\n", "utf-8")
        with new_file(folder / "weights.hdf5") as write:
            for name, view in _datasets(bilm):
                write(name, view.detach().cpu().numpy().astype(dtype))
        with writing(folder):
            options.replace(folder / "options.json")
    finally:
        options.unlink(missing_ok=True)


def _datasets(bilm: BiLM) -> Iterator[tuple[str, Tensor]]:
    """Each dataset's name with a view of the parameter that has the dataset's own shape."""
    encoder = bilm.encoder
    yield "char_embed", encoder.characters[1:]  # row 0, for positions without a word, is not in the file
    starts = np.cumsum([0] + [count for _, count in encoder.filters])
    for k, (width, count) in enumerate(encoder.filters):
        yield f"CNN/W_cnn_{k}", encoder.kernels[k].view(1, width, -1, count)
        yield f"CNN/b_cnn_{k}", encoder.kernel_bias[starts[k] : starts[k + 1]]
    for k, highway in enumerate(encoder.highways):
        for gate in ("transform", "carry"):
            yield f"CNN_high_{k}/W_{gate}", getattr(highway, gate).weight.t()
            yield f"CNN_high_{k}/b_{gate}", getattr(highway, gate).bias
    if isinstance(encoder.projection, nn.Linear):
        yield "CNN_proj/W_proj", encoder.projection.weight.t()
        yield "CNN_proj/b_proj", encoder.projection.bias
    for direction in (0, 1):
        for k, lstm in enumerate(bilm.lstms):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{k}/LSTMCell"
            yield f"{cell}/W_0", lstm.weight[direction]
            yield f"{cell}/B", lstm.bias[direction]
            if lstm.w_projection is not None:
                yield f"{cell}/W_P_0", lstm.w_projection[direction]


def _layers_in(file: h5py.File) -> list[str]:
    """The names of all weights of layers in a file; whatever else there is does no harm."""
    names: list[str] = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return [name for name in names if name.startswith(("CNN", "RNN"))]


def _sizes(options: BiLMOptions) -> str:
    return (
        f"lstm.dim {options.dim}, lstm.projection_dim {options.projection_dim}, lstm.n_layers {options.n_layers}, "
        f"char_cnn.n_highway {options.n_highway}, {sum(n for _, n in options.filters)} filters"
    )
