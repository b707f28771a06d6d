"""Files that are written line by line and appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from elmo_tasks.errors import UserError


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write some lines, without holding them, and give the file its name when it is complete.

    Raises:
        UserError: if it cannot be written; nothing of it is left then.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("x", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        temporary.unlink(missing_ok=True)


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
