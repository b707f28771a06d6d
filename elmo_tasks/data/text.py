"""Lines of a text file, plain or compressed, and what every reader asks of a token list."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from elmo_tasks.errors import UserError

MAX_TOKEN_CHARACTERS = 1000  # the longest web address in a treebank has 473

_OPENERS: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
_CHUNK_BYTES = 1 << 16

_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}


def files_below(folder: Path) -> list[Path]:
    """All files below a folder at any depth, sorted; links to folders are followed, each folder is entered once.

    A link that leads nowhere is among them, so that who reads it complains.
    """
    found: list[Path] = []
    entered: set[Path] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        real = Path(root).resolve()
        if real in entered:  # a link back, or a second one to the same place
            folders.clear()
            continue
        entered.add(real)
        folders.sort()
        found += [Path(root, name) for name in names]
    return sorted(found)


def read_lines(path: Path, max_bytes: int | None = None) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their end; a byte order mark and CRLF ends are taken off.

    Args:
        path: of the file; its ending says how it is compressed.
        max_bytes: no more of a line is ever held; a longer one is an error.

    Raises:
        UserError: naming file and line, if the file cannot be read as UTF-8 or a line is too long.
    """
    number, limit = 0, -1 if max_bytes is None else max_bytes + 1
    try:
        with _open(path) as file:
            for number, raw in enumerate(iter(partial(file.readline, limit), b""), start=1):
                if max_bytes is not None and len(raw) > max_bytes:
                    raise UserError(f"{path}:{number}: more than {max_bytes:,} bytes; expected one sentence a line")
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{number}: not UTF-8 ({error.reason})") from error
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({_why(error)})") from error


def read_chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, some at a time.

    Raises:
        UserError: naming the file, if it cannot be read.
    """
    try:
        with _open(path) as file:
            while chunk := file.read(_CHUNK_BYTES):
                yield chunk
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read ({_why(error)})") from error


def _why(error: Exception) -> str:
    """Without the path, which stands before it."""
    return getattr(error, "strerror", None) or str(error)


def _open(path: Path) -> IO[bytes]:
    file: IO[bytes] = _OPENERS.get(path.suffix, open)(path, "rb")
    return file


def check_tokens(tokens: Sequence[str], where: str) -> None:
    """Refuse what cannot be a tokenised sentence.

    Raises:
        UserError: for an empty sentence, an empty token, or a token so long that it must be something else.
    """
    if not tokens:
        raise UserError(f"{where}: an empty sentence")
    for token in tokens:
        if not token:
            raise UserError(f"{where}: an empty token in {' '.join(tokens[:8])!r}")
        if not token.isascii() and any("\ud800" <= letter <= "\udfff" for letter in token):
            raise UserError(f"{where}: half a character (a lone surrogate) in {token!r}")
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise UserError(
                f"{where}: a token of {len(token)} characters ({token[:20]!r}...); "
                f"expected words of at most {MAX_TOKEN_CHARACTERS}"
            )


def unescape(token: str) -> str:
    """Undo the Penn Treebank's escapes, so that word vectors and the biLM see the text that they were trained on."""
    return _ESCAPES.get(token, token.replace("\\/", "/").replace("\\*", "*"))
