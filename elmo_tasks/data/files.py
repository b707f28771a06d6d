"""The files of data sets, plain or compressed: finding them, and reading them in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from elmo_tasks.errors import UserError, quoted

_OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_COMPRESSED = re.compile(rb"\x1f\x8b|\xfd7zXZ\x00|BZh[1-9]1AY&SY|PK\x03\x04")  # first bytes: gzip, xz, bzip2, zip
_CHUNK_BYTES = 1 << 16
_MAX_RATIO = 100  # of a compressed file's contents to its size; text has 3 to 10
_RATIO_FROM = 100_000_000  # bytes that any compressed file may have


def files_below(folder: Path) -> list[Path]:
    """All files below a folder at any depth, sorted; links to folders are followed, each folder is entered once.

    Broken links are included, so that reading them raises an error.
    """
    found: list[Path] = []
    entered: set[Path] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        resolved = Path(root).resolve()
        if resolved in entered:  # a link to a parent, or a second link to the same folder
            folders.clear()
            continue
        entered.add(resolved)
        folders.sort()
        found += [Path(root, name) for name in names]
    return sorted(found)


def find_matches(root: Path, pattern: str, option: str) -> list[Path]:
    """The files and folders below ``root`` that match ``pattern``, sorted.

    Raises:
        UserError: naming ``option``, if it is no pattern.
    """
    try:
        return sorted(root.glob(pattern))
    except (ValueError, OSError, NotImplementedError) as error:
        raise UserError(f"{option}={quoted(pattern)} is no path or pattern ({error})") from error


def decompressed_name(path: Path) -> str:
    """The name of a file without the ending of its compression, if it has one."""
    return path.stem if path.suffix in _OPENERS else path.name


def refuse_copies(paths: Sequence[Path]) -> None:
    """Check that no text is there twice, plain and compressed.

    Raises:
        UserError: naming the first one that is.
    """
    first: dict[Path, Path] = {}
    for path in paths:
        other = first.setdefault(path.with_name(decompressed_name(path)), path)
        if other != path:
            raise UserError(f"{path}: the same text as {other.name}; expected only one of them")


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed contents of a file; its ending says how it is compressed.

    Raises:
        UserError: naming the file, if it cannot be read while it is open, or is compressed and far larger than text can
            be.
    """
    try:
        with _open(path) as file:
            yield file
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error  # without the path
        raise UserError(f"{path}: cannot be read ({reason})") from error


def _open(path: Path) -> IO[bytes]:
    if not path.is_file() and path.exists():
        raise UserError(f"{path}: cannot be read (it is not a regular file)")
    opener = _OPENERS.get(path.suffix)
    if opener is None:
        file = path.open("rb")
        if _COMPRESSED.match(file.peek(10)):
            file.close()
            raise UserError(f"{path}: compressed; expected text, or a name that ends in {', '.join(_OPENERS)}")
        return file
    return io.BufferedReader(_Bounded(opener(path, "rb"), path), _CHUNK_BYTES)


def read_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, some at a time.

    Raises:
        UserError: as :func:`opened`.
    """
    with opened(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def read_content(path: Path, max_bytes: int) -> bytes:
    """The whole content of a file.

    Raises:
        UserError: naming the file, if it cannot be read or holds more than ``max_bytes``.
    """
    chunks, n_bytes = [], 0
    for chunk in read_chunks(path):
        n_bytes += len(chunk)
        if n_bytes > max_bytes:
            raise UserError(f"{path}: more than {max_bytes:,} bytes; expected a smaller file")
        chunks.append(chunk)
    return b"".join(chunks)


class _Bounded(io.RawIOBase):
    """A compressed file's contents, as long as they can be text: a small file can hold any number of zeros."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self._file, self._path = file, path
        self._limit = max(_RATIO_FROM, _MAX_RATIO * path.stat().st_size)
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        self._n_bytes += len(data)
        if self._n_bytes > self._limit:
            raise UserError(
                f"{self._path}: holds more than {self._limit:,} bytes, {_MAX_RATIO} times its own size; expected text"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
