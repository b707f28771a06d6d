"""One shard of the layer store: the rows of several arrays in one file, and an index of their keys.

``NAME.bin`` holds the rows one array after the other, ``NAME.idx`` says which key begins where and has the digests of
both. Both are written under temporary names, synced and renamed, the index last.

The numbers of a large store cannot be read through at each start. The index records their size and the time at
which they were written. As long as the file has both, its digest is only checked by :func:`verify_shard`; otherwise (a
copy, a restored backup, an edit) it is checked when the file is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

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


class IndexHeader(NamedTuple):
    """The numbers of an index: their digest, their size in bytes, and when they were written (in nanoseconds)."""

    numbers: str
    n_bytes: int
    written: int


def read_shard(index: Path, row_shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[NDArray[Any], Array]:
    """The entries of the index, and the numbers, mapped from a file that may be removed afterwards.

    Returns:
        entries with ``key``, ``start`` and ``rows``; numbers ``[n, *row_shape]``, the rows of all arrays.

    Raises:
        BadShardError: if index or numbers are not what was written, or by another version of the layer store.
        FileNotFoundError: if there is no such index.
        OSError: if it cannot be read.
    """
    entries, header = _entries(_read_index(index))
    try:
        with index.with_suffix(".bin").open("rb") as file:
            _check_numbers(file, header)
            n_rows = header.n_bytes // (math.prod(row_shape) * dtype.itemsize)
            start, rows = entries["start"], entries["rows"]
            if (start < 0).any() or (rows < 0).any() or (start + rows > n_rows).any():
                raise BadShardError("has an index of other numbers")
            if not n_rows:  # nothing to map
                return entries, np.empty((0, *row_shape), dtype)
            return entries, np.memmap(file, dtype, "r", shape=(n_rows, *row_shape))
    except FileNotFoundError as error:
        raise BadShardError("has lost its numbers") from error


def verify_shard(index: Path) -> None:
    """Read index and numbers through and compare them with their digests.

    Raises:
        BadShardError: as :func:`read_shard`.
        FileNotFoundError: if there is no such index.
        OSError: if it cannot be read.
    """
    _, header = _entries(_read_index(index))
    try:
        with index.with_suffix(".bin").open("rb") as file:
            _check_digest(file, header)
    except FileNotFoundError as error:
        raise BadShardError("has lost its numbers") from error


def count_rows(index: Path) -> tuple[int, int]:
    """The numbers of keys and of rows of a shard, by its index; 0 and 0 if it cannot be read."""
    try:
        entries, _ = _entries(_read_index(index))
    except (BadShardError, OSError):
        return 0, 0
    return len(entries), int(entries["rows"].sum())


def read_sample(index: Path) -> list[list[str]]:
    """The tokens of some arrays of a shard; none of a shard that was written before they were kept.

    Raises:
        BadShardError: as :func:`read_shard`.
        OSError: if it cannot be read.
    """
    data = _read_index(index)
    _entries(data)
    found: list[list[str]] = json.loads(data.partition(b"\n")[0]).get("sample", [])
    return found


def _check_numbers(file: BufferedReader, header: IndexHeader) -> None:
    """Check the size and time of a file of numbers, or else its digest; if that is right, the time is restored."""
    status = os.fstat(file.fileno())
    if (status.st_size, status.st_mtime_ns) == (header.n_bytes, header.written):
        return
    _check_digest(file, header)
    with suppress(OSError):  # a store that this user may only read is checked each time
        os.utime(file.fileno(), ns=(status.st_atime_ns, header.written))


def _check_digest(file: BufferedReader, header: IndexHeader) -> None:
    if os.fstat(file.fileno()).st_size != header.n_bytes:
        raise BadShardError("has damaged numbers")
    if hashlib.file_digest(file, "sha256").hexdigest() != header.numbers:
        raise BadShardError("has damaged numbers")


def _read_index(index: Path) -> bytes:
    """The bytes of an index, if it is a file of its own and no larger than one can be.

    Raises:
        BadShardError: if it is not.
        OSError: if it cannot be read.
    """
    found = index.lstat()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):  # a folder cannot be opened
        raise BadShardError("is a link or no regular file")
    if found.st_size > _MAX_INDEX_BYTES:
        raise BadShardError(f"has {found.st_size:,} bytes, more than an index can have")
    return index.read_bytes()


def _entries(data: bytes) -> tuple[NDArray[Any], IndexHeader]:
    """The entries and the header of an index.

    Raises:
        BadShardError: if it is damaged or by another version of the layer store.
    """
    head, _, body = data.partition(b"\n")
    try:
        header = json.loads(head)
        version, index_digest = header["version"], header.get("index")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadShardError("has a damaged index") from error
    if version != VERSION:
        raise BadShardError(f"was written by version {quoted(version)} of the layer store (this is version {VERSION})")
    fields = tuple(header.get(name) for name in IndexHeader._fields)
    if digest_index(header, body) != index_digest or [type(value) for value in fields] != [str, int, int]:
        raise BadShardError("has a damaged index")
    return np.frombuffer(body, _INDEX), IndexHeader(*fields)


def digest_index(header: dict[str, Any], body: bytes) -> str:
    """SHA-256 of an index: all of its header but the digest itself, and its entries."""
    rest = {key: value for key, value in header.items() if key != "index"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode() + b"\n" + body).hexdigest()
