"""Keeping what is scored apart from what is trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from elmo_tasks.errors import UserError


def refuse_leaks(files: Mapping[str, Sequence[Path]]) -> None:
    """Check that no file of the training set is in another split.

    Args:
        files: those of each split; one is ``train``.

    Raises:
        UserError: naming the first one that is.
    """
    train = {path.resolve() for path in files.get("train", ())}
    for split, paths in files.items():
        for path in paths:
            if split != "train" and path.resolve() in train:
                raise UserError(f"{path} is in both train and {split}; expected files of its own for each")
