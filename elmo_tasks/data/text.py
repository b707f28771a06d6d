"""Lines of a text file, plain or compressed, and checks of token lists."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from elmo_tasks.errors import UserError, quoted

MAX_TOKEN_CHARACTERS = 1000  # the longest web address in a treebank has 473

_OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_CHUNK_BYTES = 1 << 16
_MAX_LINE_BYTES = 10_000_000  # far longer than a tree, a paragraph or a token with its annotations
_MAX_RATIO = 100  # of a compressed file's contents to its size; text has 3 to 10
_RATIO_FROM = 100_000_000  # bytes that any compressed file may have

_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}


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


def check_encoding(name: str) -> str:
    """The canonical name of an encoding that Python knows and that encodes ASCII as single bytes.

    Raises:
        UserError: if it is not one.
    """
    try:
        ascii_bytes = "a\tb\r\n".encode(name)
    except (LookupError, TypeError, UnicodeError, ValueError):
        ascii_bytes = b""
    if ascii_bytes != b"a\tb\r\n":
        expected = "an encoding that extends ASCII, such as utf-8, latin-1 or euc-kr"
        raise UserError(f"task.reader.encoding must be {expected}, found {quoted(name)}")
    return codecs.lookup(name).name


def read_lines(path: Path, max_bytes: int = _MAX_LINE_BYTES, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their end; a byte order mark and CRLF ends are removed.

    Args:
        path: of the file; its ending says how it is compressed.
        max_bytes: no more of a line is ever held; a longer one is an error.
        encoding: a user's choice (see :func:`check_encoding`); None is UTF-8.

    Raises:
        UserError: naming file and line, if the file cannot be read or decoded, a line is too long, or a compressed file
            is far larger than text can be.
    """
    number, codec = 0, encoding or "utf-8"
    try:
        with _open(path) as file:
            for number, raw in enumerate(iter(partial(file.readline, max_bytes + 1), b""), start=1):
                if len(raw) > max_bytes:
                    raise UserError(f"{path}:{number}: more than {max_bytes:,} bytes in a line; expected lines of text")
                if number == 1:
                    raw = _without_mark(path, raw, codec)
                yield number, raw.decode(codec).rstrip("\r\n")
    except UnicodeDecodeError as error:
        option = "" if encoding is None else "; set task.reader.encoding to the file's, such as latin-1"
        raise UserError(f"{path}:{number}: not {codec.upper()} ({error.reason}){option}") from error
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({_why(error)})") from error


def _without_mark(path: Path, line: bytes, codec: str) -> bytes:
    """A file's first line without the byte order mark of UTF-8.

    Raises:
        UserError: if it has that of UTF-16.
    """
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UserError(f"{path}: UTF-16, which is not read; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")
    return line.removeprefix(codecs.BOM_UTF8) if codec == "utf-8" else line


def read_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, some at a time.

    Raises:
        UserError: naming the file, if it cannot be read, or is compressed and far larger than text can be.
    """
    try:
        with _open(path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({_why(error)})") from error


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


def _why(error: Exception) -> str:
    """The reason without the path, which the message already has."""
    return getattr(error, "strerror", None) or str(error)


def _open(path: Path) -> IO[bytes]:
    if not path.is_file() and path.exists():
        raise UserError(f"{path}: cannot be read (it is not a regular file)")
    opener = _OPENERS.get(path.suffix)
    if opener is None:
        return path.open("rb")
    return io.BufferedReader(_Bounded(opener(path, "rb"), path), _CHUNK_BYTES)


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


def check_tokens(tokens: Sequence[str], where: str) -> None:
    """Check that a list of tokens can be a sentence.

    Raises:
        UserError: for an empty sentence, an empty token, or a token so long that it must be something else.
    """
    if not tokens:
        raise UserError(f"{where}: an empty sentence")
    for token in tokens:
        if not token:
            raise UserError(f"{where}: an empty token in {quoted(' '.join(tokens[:8]))}")
        if not token.isascii() and any("\ud800" <= character <= "\udfff" for character in token):
            raise UserError(f"{where}: half a character (a lone surrogate) in {quoted(token)}")
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise UserError(
                f"{where}: a token of {len(token)} characters ({token[:20]!r}...); "
                f"expected words of at most {MAX_TOKEN_CHARACTERS}"
            )


def unescape_treebank(token: str) -> str:
    """Undo the Penn Treebank's escapes, so that word vectors and the biLM see the text that they were trained on."""
    return _ESCAPES.get(token, token.replace("\\/", "/").replace("\\*", "*"))
