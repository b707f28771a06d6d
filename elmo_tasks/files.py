"""Reading files of bounded size, writing files that appear whole or not at all, and digests of files.

A file is written under a temporary name in the same folder, then renamed.
"""

from __future__ import annotations

import codecs
import glob
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError, quoted

MAX_JSON_BYTES = 10_000_000
"""Limit for configurations and indexes; the file of a tokeniser has a few million bytes."""

_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}

OTHER_FOLDER = "choose another folder (paths.outputs, or --out)"
"""What can be done if the files of a training cannot be written."""

STALE = 86_400.0
"""Seconds after which a temporary file of a killed process is removed by the next process that writes the same file."""


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file of bounded size.

    Raises:
        UserError: naming the file, if it cannot be read, is not a regular file (such as a device), or is too large.
    """
    try:
        _refuse_irregular(path)
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > max_bytes:
        raise UserError(f"{path}: larger than {max_bytes:,} bytes; expected a smaller file")
    return content


def _refuse_irregular(path: Path) -> None:
    """Refuse a path that exists and is not a regular file: a device can be read without end.

    Raises:
        UserError: for such a path.
    """
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: cannot be read (it is not a regular file)")


def read_json(path: Path, max_bytes: int = MAX_JSON_BYTES) -> Any:
    """The value in a JSON file; a byte order mark is skipped.

    Raises:
        UserError: as :func:`read_bytes`, and if it is not JSON in UTF-8, or nested too deeply.
    """
    return parse_json(read_bytes(path, max_bytes), path)


def read_object(path: Path, expected: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """The JSON object in a file; it must have the expected keys, with values of the expected types, and may have more.

    Raises:
        UserError: as :func:`read_json`, and naming the key that is missing or has another value.
    """
    return check_object(read_json(path), str(path), expected)


def check_object(value: Any, where: str, expected: Mapping[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """Return a JSON value, checked: it must be an object with the expected keys and values of the expected types.

    Args:
        value: any JSON value.
        where: what the value is, for messages.
        expected: the type, or the types, of each key's value.

    Raises:
        UserError: if it is not an object, and naming the key that is missing or has another value.
    """
    if not isinstance(value, dict):
        raise UserError(f"{where}: expected an object with {', '.join(expected)}, found {quoted(value)}")
    for key, kind in expected.items():
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if key not in value:
            raise UserError(f"{where}: {key} is missing")
        if not isinstance(value[key], kinds) or (isinstance(value[key], bool) and bool not in kinds):
            names = " or ".join(_JSON_NAMES[one] for one in kinds)
            raise UserError(f"{where}: {key} must be {names}, found {quoted(value[key])}")
    return value


def parse_json(content: bytes, path: Path) -> Any:
    """The value in the content of a JSON file.

    Raises:
        UserError: if it is not JSON in UTF-8, or nested too deeply.
    """
    try:
        return json.loads(content.removeprefix(codecs.BOM_UTF8).decode("utf-8"))
    except RecursionError as error:
        raise UserError(f"{path}: JSON that is nested too deeply") from error
    except ValueError as error:  # also of a wrong encoding
        raise UserError(f"{path}: not JSON ({error})") from error


def write_json(path: Path, content: Any, remedy: str = "set results.dir to another folder") -> None:
    """Write a JSON file (see :func:`write_bytes`).

    Raises:
        ValueError: for NaN and infinity.
        UserError: as :func:`write_bytes`.
    """
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n", remedy)


def write_text(path: Path, content: str, remedy: str = "set results.dir to another folder") -> None:
    """Write a text file in UTF-8 (see :func:`write_bytes`)."""
    write_bytes(path, content.encode("utf-8"), remedy)


def write_bytes(path: Path, content: bytes, remedy: str = "set results.dir to another folder") -> None:
    """Write a file that appears whole or not at all; missing folders are created.

    Raises:
        UserError: if the file cannot be written; the sentence ends in the ``remedy``.
    """

    try:
        write_atomically(path, lambda temporary: temporary.write_bytes(content))
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); {remedy}") from error


def write_atomically(path: Path, fill: Callable[[Path], object]) -> None:
    """Let ``fill`` write to an empty temporary file, then rename this file to ``path``.

    The temporary file is created exclusively and under a random name, so that nothing is written to a link or a file
    that someone else put there. The temporary file of a killed process is removed after a day.

    Raises:
        OSError: if the file cannot be written; ``path`` is then as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o666))
    try:
        fill(temporary)
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def publish(temporary: Path, path: Path) -> None:
    """Rename a written file. Its content is on the disk before: it is whole also after the machine has lost power.

    Raises:
        OSError: if that is not possible; ``path`` is then as it was.
    """
    _sync(temporary)
    temporary.replace(path)
    with suppress(OSError):  # some file systems cannot sync a folder
        _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_bytes(folder: Path) -> int:
    """Free space on the disk that a folder is on, or will be on once it is made.

    Raises:
        OSError: if it cannot be looked up.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
    return shutil.disk_usage(nearest).free


def sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal digits.

    Raises:
        UserError: if it is not a regular file.
        OSError: if it cannot be read.
    """
    _refuse_irregular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_stale(path: Path, seconds: float = STALE) -> None:
    """Remove temporary files and folders of ``path`` that nobody has written to for so long.

    The owner of a lock on ``path`` gives 0 seconds: whoever wrote them was killed.
    """
    before = time.time() - seconds
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(FileNotFoundError):  # another process removed it
            if seconds == 0 or left.lstat().st_mtime < before:
                remove_temporary(left)


def remove_temporaries(folder: Path) -> None:
    """Remove all temporary files and folders below a folder that nobody else writes to."""
    for left in [*folder.rglob(".*.tmp")]:
        with suppress(FileNotFoundError):  # it was in one that is removed
            remove_temporary(left)


def remove_temporary(path: Path) -> None:
    """Remove a temporary file, or a temporary folder with what is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink()


def digest_training(train: Sequence[Path], dev: Sequence[Path], also: bytes = b"") -> str:
    """Digest of training and development files; it depends on which of them are for training.

    The digest is that of all files and ``also``. With at most one development file, or the same files for both, this
    says which are for training; otherwise the number of training files is added.
    """
    evident = len(dev) <= 1 or list(dev) == list(train)
    return digest_files([*train, *dev], also=also + (b"" if evident else f"{len(train)} training files".encode()))


def digest_files(paths: Iterable[Path], also: bytes = b"") -> str:
    """Sixteen hexadecimal digits for the contents of some files, in order, and for ``also``.

    Raises:
        UserError: naming the first that is not a regular file or cannot be read.
    """
    sha = hashlib.sha256(also)
    for path in paths:
        try:
            _refuse_irregular(path)
            with path.open("rb") as file:
                sha.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise UserError(f"{path}: cannot be read as a file ({error.strerror})") from error
    return sha.hexdigest()[:16]
