"""One shard of the layer store: the rows of several arrays in one file, and an index that says whose they are.

``NAME.bin`` holds the rows one array after the other, ``NAME.idx`` says which key begins where and has the digests of
both. Both are written under temporary names, synced and renamed, the index last.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 3

_INDEX = np.dtype([("key", "V16"), ("start", "<i8"), ("rows", "<i8")])

Array = NDArray[np.floating[Any]]
Entry = tuple[bytes, int, int]


class BadShardError(Exception):
    """Why a shard cannot be used: the end of a sentence that begins with its name."""


def write_shard(folder: Path, keys: Sequence[bytes], lengths: Sequence[int], arrays: Iterable[Array]) -> None:
    """Write one shard under a name of its own.

    Args:
        folder: where to.
        keys: sixteen bytes for each array.
        lengths: the rows of each array.
        arrays: in the number format to write.

    Raises:
        OSError: if it cannot be written; nothing of it is left then.
    """
    name = uuid.uuid4().hex
    index = np.empty(len(keys), dtype=_INDEX)
    index["key"], index["rows"] = np.array(keys, dtype="V16"), lengths
    index["start"] = index["rows"].cumsum() - index["rows"]
    temporary = [folder / f"{name}.{suffix}.tmp" for suffix in ("bin", "idx")]
    try:
        sha = hashlib.sha256()
        with temporary[0].open("wb") as file:
            for array in arrays:
                data = array.tobytes()
                sha.update(data)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        body = index.tobytes()
        header = {"version": VERSION, "numbers": sha.hexdigest(), "index": hashlib.sha256(body).hexdigest()}
        with temporary[1].open("wb") as file:
            file.write(json.dumps(header).encode() + b"\n" + body)
            file.flush()
            os.fsync(file.fileno())
        for path in temporary:
            path.rename(path.with_suffix(""))
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def read_shard(index: Path, row_shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[list[Entry], Array]:
    """Key, first row and number of rows of each array, and all rows, mapped from a file that may be removed then.

    Raises:
        BadShardError: if index or numbers are not what was written, or by another version of the layer store.
        FileNotFoundError: if there is no such index.
        OSError: if it cannot be read.
    """
    entries, sha = _entries(index.read_bytes())
    try:
        with index.with_suffix(".bin").open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != sha:
                raise BadShardError("has damaged numbers")
            n_rows = file.tell() // (math.prod(row_shape) * dtype.itemsize)
            if any(start < 0 or rows < 0 or start + rows > n_rows for _, start, rows in entries):
                raise BadShardError("has an index of other numbers")
            if not n_rows:  # nothing to map
                return entries, np.empty((0, *row_shape), dtype)
            return entries, np.memmap(file, dtype, "r", shape=(n_rows, *row_shape))
    except FileNotFoundError as error:
        raise BadShardError("has lost its numbers") from error


def _entries(data: bytes) -> tuple[list[Entry], str]:
    """What the index says, and the digest that the numbers must have."""
    head, _, body = data.partition(b"\n")
    try:
        header = json.loads(head)
        version, of_numbers, of_index = header["version"], header.get("numbers"), header.get("index")
    except (ValueError, KeyError, TypeError) as error:
        raise BadShardError("has a damaged index") from error
    if version != VERSION:
        raise BadShardError(f"was written by version {version} of the layer store (this is version {VERSION})")
    if hashlib.sha256(body).hexdigest() != of_index:
        raise BadShardError("has a damaged index")
    return np.frombuffer(body, _INDEX).tolist(), of_numbers
