"""Files that are written line by line and appear whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.files import write_atomically


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines one at a time; the file appears when it is complete.

    Raises:
        UserError: if the file cannot be written; nothing of it is left then.
    """

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    try:
        write_atomically(path, write)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error


def link(path: Path, target: str) -> None:
    """Make ``path`` a symbolic link to ``target`` beside it, if nothing is there.

    Raises:
        UserError: if it cannot be made.
    """
    try:
        if not path.exists():
            path.symlink_to(target)
    except OSError as error:
        raise UserError(f"{path}: cannot be linked to {target} ({error.strerror or error})") from error
