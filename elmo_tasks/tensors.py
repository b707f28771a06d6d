"""Named tensors as safetensors files, without pickle.

They are written whole or not at all. Shapes and number formats are checked before any data is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.files import OTHER_FOLDER, write_atomically

_DTYPES = ("F16", "BF16", "F32", "F64", "I8", "I16", "I32", "I64", "U8", "BOOL")


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in a file, by name; no data is read.

    Raises:
        UserError: if the file is missing or damaged, or a tensor has a number format that models do not use.
    """
    shapes = {}
    with _opened(path) as file:
        for name in file.keys():  # noqa: SIM118 (no mapping)
            stored = file.get_slice(name)
            if stored.get_dtype() not in _DTYPES:
                dtype = quoted(stored.get_dtype())
                raise UserError(f"{path}: {quoted(name, 60)} holds {dtype}; expected one of {', '.join(_DTYPES)}")
            shapes[name] = tuple(stored.get_shape())
    return shapes


def check_shapes(model: nn.Module, path: Path) -> None:
    """Check that a file has the weights of a model, by name and shape; no data is read. It may have others too.

    Args:
        model: may be on the ``meta`` device, without memory.
        path: of the file.

    Raises:
        UserError: as :func:`read_shapes`, and naming the first weight that is missing or of another shape.
    """
    _expect_shapes(read_shapes(path), model.state_dict(), path)


def _expect_shapes(found: Mapping[str, tuple[int, ...]], expected: Mapping[str, Tensor], path: Path) -> None:
    for name, value in expected.items():
        shape = tuple(value.shape)
        if name not in found:
            raise UserError(f"{path}: weights of another model: {name} is missing")
        if found[name] != shape:
            raise UserError(f"{path}: weights of another size: {name} is {found[name]}, but this model's is {shape}")


def check_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path) -> None:
    """Check that weights are those of a model.

    Raises:
        UserError: naming the first that is missing, unknown, of another shape (and both shapes), of another kind of
            numbers, or not finite.
    """
    expected = model.state_dict()
    _expect_shapes({name: tuple(weights[name].shape) for name in expected if name in weights}, expected, path)
    for name, value in expected.items():
        if weights[name].is_floating_point() != value.is_floating_point():
            raise UserError(f"{path}: {name} is of {weights[name].dtype}, but this model's is of {value.dtype}")
        if not weights[name].isfinite().all():
            raise UserError(f"{path}: {name} holds values that are not finite")
    for name in weights:
        if name not in expected:
            raise UserError(f"{path}: weights of another model: this model has no {name}")


def read_metadata(path: Path) -> dict[str, str]:
    """The text in a file's header.

    Raises:
        UserError: if the file is missing or damaged.
    """
    with _opened(path) as file:
        return dict(file.metadata() or {})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors in a file, by name.

    Raises:
        UserError: as :func:`read_shapes`.
    """
    read_shapes(path)
    try:
        return load_file(path)
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        raise UserError(f"{path}: damaged or not a safetensors file ({shortened(str(error), 100)})") from error


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file to read from.

    Raises:
        UserError: if it is missing, no regular file, or damaged.
    """
    if not path.is_file():
        raise UserError(f"{path}: cannot be read (no such file, or not a regular one)")
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        raise UserError(f"{path}: damaged or not a safetensors file ({shortened(str(error), 100)})") from error


def write_tensors(path: Path, tensors: dict[str, Tensor], what: str, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file in one rename, so that a killed process leaves the earlier file.

    Args:
        path: of the file; a missing folder is created.
        tensors: on the CPU and contiguous, any shapes.
        what: what the tensors are, for the error message.
        metadata: text for the file's header.

    Raises:
        UserError: if the file cannot be written.
    """

    def write(temporary: Path) -> None:
        mode = temporary.stat().st_mode  # as the umask gives it; safetensors makes files for their owner alone
        # safetensors writes to a temporary file of its own name, which a killed process would leave for ever
        with TemporaryDirectory(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent) as folder:
            written = Path(folder) / path.name
            save_file(tensors, written, metadata)
            written.replace(temporary)
        temporary.chmod(mode)

    try:
        write_atomically(path, write)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{path}: {what} cannot be written ({reason}); {OTHER_FOLDER}") from error
