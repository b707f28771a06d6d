"""Large files cut into parts, for transfers that limit the size of a file.

A part is named ``NAME.part-000-of-003-DIGEST`` after the whole file and its content, so that parts of two versions of a
file are never joined.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.files import write_bytes

_PART = re.compile(r"(?P<name>.+)\.part-(?P<number>\d{3,})-of-(?P<count>\d{3,})-(?P<digest>[0-9a-f]{16})")


def split_files(folder: Path, max_bytes: int) -> None:
    """Replace each file of a folder that is larger than ``max_bytes`` by its parts; hidden files stay."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.stat().st_size > max_bytes and not path.name.startswith("."):
            content = path.read_bytes()
            digest = _digest(content)
            starts = range(0, len(content), max_bytes)
            parts = [path.with_name(_part(path.name, n, len(starts), digest)) for n in range(len(starts))]
            for part, start in zip(parts, starts, strict=True):
                write_bytes(part, content[start : start + max_bytes], remedy="choose another folder")
            remove_parts(folder, path.name, keep=parts)
            path.unlink()


def join_files(folder: Path) -> list[Path]:
    """Put the files that were cut together again; the parts are removed.

    Raises:
        UserError: if a part is missing or damaged, or if there are two versions of a file.
    """
    found: dict[str, set[tuple[str, int]]] = defaultdict(set)  # digests and numbers of parts, by name
    for path in folder.iterdir():
        if match := _PART.fullmatch(path.name):
            found[match["name"]].add((match["digest"], int(match["count"])))
    for name, versions in sorted(found.items()):
        whole = folder / name
        if not whole.exists():
            _join(whole, versions)
        elif _digest(whole.read_bytes()) not in {digest for digest, _ in versions}:
            raise UserError(f"{whole}: there are parts of another version of it; remove the file or the parts")
        remove_parts(folder, name)  # also those that a process left when it was killed on the way
    return [folder / name for name in sorted(found)]


def remove_parts(folder: Path, name: str | None = None, keep: list[Path] | None = None) -> None:
    """Remove the parts of one file, or of all files, except some."""
    for path in folder.iterdir():
        match = _PART.fullmatch(path.name)
        if match and name in (None, match["name"]) and path not in (keep or []):
            path.unlink()


def _join(whole: Path, versions: set[tuple[str, int]]) -> None:
    if len(versions) > 1:
        raise UserError(f"{whole}: there are parts of {len(versions)} versions of it; remove those of the older ones")
    ((digest, count),) = versions
    parts = [whole.with_name(_part(whole.name, number, count, digest)) for number in range(count)]
    for part in parts:
        if not part.exists():
            raise UserError(f"{part}: missing; {whole.name} has {len(parts)} parts")
    content = b"".join(part.read_bytes() for part in parts)
    if _digest(content) != digest:
        raise UserError(f"{whole}: its parts are damaged: together they do not have the digest in their names")
    write_bytes(whole, content, remedy="make room")


def _part(name: str, number: int, count: int, digest: str) -> str:
    return f"{name}.part-{number:03}-of-{count:03}-{digest}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
