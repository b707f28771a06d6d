"""One shard of the layer store: the rows of several arrays in one file, and an index of their keys.

``NAME.bin`` holds the rows one array after the other, ``NAME.idx`` says which key begins where and has the digests of
both. Both are written under temporary names, synced and renamed, the index last.

The numbers of a large store cannot be read through at each start. The index records their size and the time at which
they were written. As long as the file has both, its digest is only checked by :meth:`ShardIndex.verify`; otherwise (a
copy, a restored backup, an edit) it is checked when the file is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_tasks import interrupts
from elmo_tasks.errors import quoted
from elmo_tasks.store.unfinished import begin

VERSION = 4

_INDEX = np.dtype([("key", "V16"), ("start", "<i8"), ("rows", "<i8")])

_MAX_INDEX_BYTES = 100_000_000  # of three million arrays; a shard has 50,000 rows at most

Array = NDArray[np.floating[Any]]


class BadShardError(Exception):
    """A shard cannot be used; the message completes a sentence that begins with the name of the shard."""


def write_shard(
    folder: Path,
    keys: Sequence[bytes],
    lengths: Sequence[int],
    arrays: Iterable[Array],
    sample: Sequence[Sequence[str]] = (),
) -> None:
    """Write one shard under a name of its own; a signal waits until it is complete.

    The file of the numbers is locked until the index has its name: see :mod:`elmo_tasks.store.unfinished`.

    Args:
        folder: where to.
        keys: sixteen bytes for each array.
        lengths: the rows of each array.
        arrays: in the number format to write.
        sample: tokens of some arrays, by which they can be computed again.

    Raises:
        OSError: if it cannot be written; nothing of it is left then.
    """
    index = np.empty(len(keys), dtype=_INDEX)
    index["key"], index["rows"] = np.array(keys, dtype="V16"), lengths
    index["start"] = index["rows"].cumsum() - index["rows"]
    temporary: list[Path] = []
    with interrupts.held():
        try:
            numbers, lock = begin(folder)
            temporary = [numbers, numbers.with_name(numbers.name.replace(".bin.", ".idx."))]
            _write(temporary, arrays, index, sample)
        finally:
            for path in temporary:
                path.unlink(missing_ok=True)
        lock.release()


def _write(
    temporary: Sequence[Path], arrays: Iterable[Array], index: NDArray[Any], sample: Sequence[Sequence[str]]
) -> None:
    sha = hashlib.sha256()
    with temporary[0].open("r+b") as file:
        for array in arrays:
            data = array.tobytes()
            sha.update(data)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    written = temporary[0].stat()
    body = index.tobytes()
    header: dict[str, Any] = {
        "version": VERSION,
        "numbers": sha.hexdigest(),
        "n_bytes": written.st_size,
        "written": written.st_mtime_ns,
        "sample": [list(tokens) for tokens in sample],
    }
    header["index"] = digest_index(header, body)
    with temporary[1].open("xb") as file:
        file.write(json.dumps(header).encode() + b"\n" + body)
        file.flush()
        os.fsync(file.fileno())
    for path in temporary:
        path.rename(path.with_suffix(""))


@dataclass(frozen=True)
class ShardIndex:
    """The index of a shard, whole and of this version.

    Attributes:
        path: of the index; the numbers are beside it.
        entries: ``key``, ``start`` and ``rows`` of each array.
        numbers: digest of the numbers; ``n_bytes``: their size; ``written``: when they were written, in nanoseconds.
        sample: tokens of some arrays; none if the shard was written before they were kept.
    """

    path: Path
    entries: NDArray[Any]
    numbers: str
    n_bytes: int
    written: int
    sample: list[list[str]]

    @classmethod
    def read(cls, path: Path) -> ShardIndex:
        """Read an index and compare it with its digest.

        Raises:
            BadShardError: if it is not what was written, or by another version of the layer store.
            FileNotFoundError: if there is no such index.
            OSError: if it cannot be read.
        """
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # a folder cannot be opened
            raise BadShardError("is a link or no regular file")
        if found.st_size > _MAX_INDEX_BYTES:
            raise BadShardError(f"has {found.st_size:,} bytes, more than an index can have")
        head, _, body = path.read_bytes().partition(b"\n")
        try:
            header = json.loads(head)
            version, index_digest = header["version"], header.get("index")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadShardError("has a damaged index") from error
        if version != VERSION:
            found_version = f"version {quoted(version)} of the layer store"
            raise BadShardError(f"was written by {found_version} (this is version {VERSION})")
        numbers, n_bytes, written = (header.get(name) for name in ("numbers", "n_bytes", "written"))
        kinds = [type(value) for value in (numbers, n_bytes, written)]
        if digest_index(header, body) != index_digest or kinds != [str, int, int]:
            raise BadShardError("has a damaged index")
        return cls(path, np.frombuffer(body, _INDEX), numbers, n_bytes, written, header.get("sample", []))

    def map_numbers(self, row_shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """The numbers ``[n, *row_shape]``, the rows of all arrays, mapped from a file that may be removed afterwards.

        If the size or the time of the file is another one than it was, its digest is checked; if that is right, the
        time is restored.

        Raises:
            BadShardError: if they are not what was written.
            OSError: if they cannot be read.
        """
        with self._open_numbers() as file:
            status = os.fstat(file.fileno())
            if (status.st_size, status.st_mtime_ns) != (self.n_bytes, self.written):
                self._check_digest(file)
                with suppress(OSError):  # a store that this user may only read is checked each time
                    os.utime(file.fileno(), ns=(status.st_atime_ns, self.written))
            n_rows = self.n_bytes // (math.prod(row_shape) * dtype.itemsize)
            start, rows = self.entries["start"], self.entries["rows"]
            if (start < 0).any() or (rows < 0).any() or (start + rows > n_rows).any():
                raise BadShardError("has an index of other numbers")
            if not n_rows:  # nothing to map
                return np.empty((0, *row_shape), dtype)
            return np.memmap(file, dtype, "r", shape=(n_rows, *row_shape))

    def verify(self) -> None:
        """Read the numbers through and compare them with their digest.

        Raises:
            BadShardError: if they are not what was written.
            OSError: if they cannot be read.
        """
        with self._open_numbers() as file:
            self._check_digest(file)

    def _open_numbers(self) -> BufferedReader:
        try:
            return self.path.with_suffix(".bin").open("rb")
        except FileNotFoundError as error:
            raise BadShardError("has lost its numbers") from error

    def _check_digest(self, file: BufferedReader) -> None:
        right_size = os.fstat(file.fileno()).st_size == self.n_bytes
        if not right_size or hashlib.file_digest(file, "sha256").hexdigest() != self.numbers:
            raise BadShardError("has damaged numbers")


def readable_indexes(folder: Path) -> Iterator[ShardIndex]:
    """The indexes of a folder, in the order of their names, without those that cannot be used."""
    for path in sorted(folder.glob("*.idx")):
        with suppress(BadShardError, OSError):
            yield ShardIndex.read(path)


def digest_index(header: dict[str, Any], body: bytes) -> str:
    """SHA-256 of an index: all of its header but the digest itself, and its entries."""
    rest = {key: value for key, value in header.items() if key != "index"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode() + b"\n" + body).hexdigest()
