"""HDF5 files that appear whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from elmo_tasks import interrupts
from elmo_tasks.errors import UserError
from elmo_tasks.files import publish, remove_stale


@contextmanager
def new_file(path: Path) -> Iterator[Callable[[str, NDArray[Any]], None]]:
    """A file that appears under its name, and replaces an older one, when it is complete.

    Yields a function that writes an array under a name. A signal waits until HDF5 has done what it was asked for: it
    calls the methods of the file that it writes to, and does not expect that one of them is left by an exception.

    Raises:
        UserError: if it cannot be written; nothing of it is left then.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with writing(path):
        remove_stale(path)
        raw = _DeferredErrors(temporary, "x+")  # exclusively: a link that someone put there is not followed
    file: h5py.File | None = None

    def write(name: str, values: NDArray[Any]) -> None:
        assert file is not None
        with interrupts.held():
            file.create_dataset(name, data=values)
        with writing(path):
            raw.raise_error()

    try:
        try:
            with interrupts.deferred():
                file = h5py.File(raw, "w")
            yield write
            with interrupts.held():
                file.close()
        except (OSError, RuntimeError):
            with writing(path):  # HDF5's own error is only a consequence
                raw.raise_error()
            raise
        with writing(path):
            raw.raise_error()
            raw.close()
            publish(temporary, path)
    finally:
        with interrupts.deferred(), suppress(OSError, RuntimeError):
            if file is not None:
                file.close()  # else it would be closed later, after what it writes to
            raw.close()
        temporary.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one sentence why ``path`` cannot be written.

    Raises:
        UserError: in the place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error


class _DeferredErrors(FileIO):
    """A file that takes all that HDF5 gives and keeps its first error for later.

    HDF5 itself cannot close a file whose disk is full, holds on to it, and may crash.
    """

    error: OSError | None = None

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        n_bytes = len(left)
        while self.error is None and left:
            try:
                left = left[super().write(left) :]
            except OSError as error:
                self.error = error
        return n_bytes

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def raise_error(self) -> None:
        """Raise the error, if there was one."""
        if self.error is not None:
            raise self.error
