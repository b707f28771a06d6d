"""Large files cut into parts, for transfers that limit the size of a file."""

from __future__ import annotations

from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.files import write_bytes

_MARK = ".part-"


def split_files(folder: Path, max_bytes: int) -> None:
    """Replace each file of a folder that is larger than ``max_bytes`` by its parts, ``NAME.part-000`` and so on."""
    for path in sorted(folder.iterdir()):
        content = path.read_bytes() if path.is_file() and path.stat().st_size > max_bytes else b""
        starts = range(0, len(content), max_bytes)
        for number, start in enumerate(starts):
            name = f"{path.name}{_MARK}{number:03}-of-{len(starts):03}"
            write_bytes(path.with_name(name), content[start : start + max_bytes], remedy="choose another folder")
        if content:
            path.unlink()


def join_files(folder: Path) -> list[Path]:
    """Put the files that were cut together again; the parts are removed.

    Raises:
        UserError: if a part is missing.
    """
    whole = []
    for first in sorted(folder.glob(f"*{_MARK}000-of-*")):
        name, _, count = first.name.partition(f"{_MARK}000-of-")
        parts = [first.with_name(f"{name}{_MARK}{number:03}-of-{count}") for number in range(int(count))]
        for part in parts:
            if not part.exists():
                raise UserError(f"{part}: missing; {name} has {len(parts)} parts")
        write_bytes(first.with_name(name), b"".join(part.read_bytes() for part in parts), remedy="make room")
        for part in parts:
            part.unlink()
        whole.append(first.with_name(name))
    return whole
