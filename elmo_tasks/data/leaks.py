"""Keeping what is scored apart from what is trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from elmo_tasks.errors import UserError


def refuse_leaks(files: Mapping[str, Sequence[Path]]) -> None:
    """See that no file is in two splits.

    Args:
        files: those of each split.

    Raises:
        UserError: naming the first one that is.
    """
    splits: dict[Path, str] = {}
    for split, paths in files.items():
        for path in paths:
            other = splits.setdefault(path.resolve(), split)
            if other != split:
                raise UserError(f"{path} is in both {other} and {split}; expected files of its own for each")
