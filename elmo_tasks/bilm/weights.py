"""bilm-tf's HDF5 weight layout: which dataset belongs to which parameter, reading and writing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np
import torch
from torch import Tensor, nn

from elmo_tasks import interrupts
from elmo_tasks.bilm.hdf5 import new_file, writing
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.files import write_json

if TYPE_CHECKING:
    from elmo_tasks.bilm.model import BiLM

_MAX_DATASETS = 10_000
_MAX_RATIO = 100  # of a dataset's size to its size in the file; compressed weights have little more than 1


def find_files(folder: Path) -> tuple[Path, Path]:
    """The one ``*options.json`` of a folder, and the one ``*weights.hdf5`` or else the one ``*.hdf5``.

    Raises:
        UserError: if the folder, or one of the two, is missing or not unique.
    """
    if not folder.is_dir():
        raise UserError(f"bilm.path={folder}: no such folder; expected one with options.json and weights.hdf5")
    others = any(folder.glob("*.hdf5")) and not any(folder.glob("*weights.hdf5"))
    weights = "*.hdf5" if others else "*weights.hdf5"
    found = []
    for pattern in ("*options.json", weights):
        matches = sorted(folder.glob(pattern))
        if len(matches) != 1:
            names = ", ".join(m.name for m in matches) or "none"
            within = f"; {folder / 'bilm'} is a folder within it" if (folder / "bilm").is_dir() else ""
            raise UserError(f"bilm.path={folder}: expected exactly one file {pattern}, found {names}{within}")
        found.append(matches[0])
    return found[0], found[1]


def check_weights(bilm: BiLM, path: Path) -> None:
    """Check that a weight file has the datasets of a biLM, by name, shape and number format; no data is read.

    Args:
        bilm: of the sizes that the options give; its parameters may be on the ``meta`` device, without memory.
        path: the weight file.

    Raises:
        UserError: if the file is damaged, or a dataset is missing, has no place in this model, has another shape, holds
            other things than floating-point numbers, or is not stored in this file.
    """
    sizes = _sizes(bilm.options)
    with _opened(path) as file:
        expected = {name: tuple(view.shape) for name, view in _datasets(bilm)}
        for name in _names_in(file, path):
            if name not in expected:
                raise UserError(f"{path}: {quoted(name, 80)} has no place: the options ask for {sizes}")
        for name, shape in expected.items():
            dataset = _dataset(file, name, path)
            if dataset is None:
                raise UserError(f"{path}: dataset {name!r} is missing; the options ask for {sizes}")
            if dataset.shape != shape:
                found = "no shape" if dataset.shape is None else f"shape {shortened(str(dataset.shape), 60)}"
                raise UserError(f"{path}: {name!r} has {found}, but the options ask for {shape} ({sizes})")
            _check_storage(dataset, name, path)


def read_weights(bilm: BiLM, path: Path) -> None:
    """Fill a biLM from a weight file.

    Raises:
        UserError: as :func:`check_weights`, and if the file holds values that are not finite.
    """
    check_weights(bilm, path)
    with _opened(path) as file, torch.no_grad():
        for name, view in _datasets(bilm):
            values = np.asarray(file[name], dtype=np.float32)
            if not np.isfinite(values).all():
                raise UserError(f"{path}: {name!r} holds values that are not finite")
            view.copy_(torch.from_numpy(values))


def write_weights(bilm: BiLM, folder: Path, dtype: str = "float32") -> None:
    """Write ``options.json`` and ``weights.hdf5``; each file appears whole or not at all, and a signal waits for it.

    Raises:
        UserError: if they cannot be written.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with interrupts.held(), new_file(folder / "weights.hdf5") as write:
        for name, view in _datasets(bilm):
            write(name, view.detach().cpu().numpy().astype(dtype))
    write_json(folder / "options.json", bilm.options.to_json(), "choose another folder")


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


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file to read from.

    Raises:
        UserError: if it is not a regular file, and in place of the library's own errors while it is open.
    """
    if not path.is_file():
        raise UserError(f"{path}: cannot be read (no such file, or not a regular one)")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:
        raise UserError(f"{path}: damaged or not an HDF5 file ({shortened(str(error), 100)})") from error


def _names_in(file: h5py.File, path: Path) -> list[str]:
    """The names of all layer weights in a file; other datasets are ignored."""
    names: list[str] = []

    def visit(name: str, item: h5py.HLObject) -> bool | None:
        if isinstance(item, h5py.Dataset) and name.startswith(("CNN", "RNN")):
            names.append(name)
        return True if len(names) > _MAX_DATASETS else None  # True ends the visit

    if file.visititems(visit):
        raise UserError(f"{path}: more than {_MAX_DATASETS:,} datasets; expected the weights of a biLM")
    return names


def _dataset(file: h5py.File, name: str, path: Path) -> h5py.Dataset | None:
    """A dataset of this very file; None if it is not there.

    Raises:
        UserError: for a link to another file.
    """
    parent: h5py.Group = file
    for part in name.split("/"):
        link = parent.get(part, getlink=True) if isinstance(parent, h5py.Group) else None
        if isinstance(link, h5py.ExternalLink):
            raise UserError(f"{path}: {name!r} is a link to another file, which is not followed")
        if link is None or parent.get(part) is None:
            return None
        parent = parent[part]
    return parent if isinstance(parent, h5py.Dataset) else None


def _check_storage(dataset: h5py.Dataset, name: str, path: Path) -> None:
    """Check that a dataset is floating-point numbers that this file itself holds.

    Raises:
        UserError: if it is not.
    """
    dtype = dataset.dtype
    if dtype.kind != "f" or dtype.itemsize not in (2, 4, 8):
        raise UserError(f"{path}: {name!r} holds {shortened(str(dtype), 40)}; expected float16, float32 or float64")
    if dataset.is_virtual or dataset.external:
        raise UserError(f"{path}: {name!r} is stored in another file, which is not read")
    if dataset.nbytes > _MAX_RATIO * dataset.id.get_storage_size():
        stored = dataset.id.get_storage_size()
        raise UserError(f"{path}: {name!r} has {dataset.nbytes:,} bytes, of which {stored:,} are in the file")


def _sizes(options: BiLMOptions) -> str:
    return (
        f"lstm.dim {options.dim}, lstm.projection_dim {options.projection_dim}, lstm.n_layers {options.n_layers}, "
        f"char_cnn.n_highway {options.n_highway}, {sum(n for _, n in options.filters)} filters"
    )
