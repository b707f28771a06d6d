"""``pack.json``: what there is in a pack, checked before any other file of it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError, quoted
from elmo_tasks.files import check_object

HEADER = "pack.json"
FORMAT = 1
SPLITS = ("train", "heldout")


@dataclass(frozen=True)
class PackHeader:
    """What ``pack.json`` says: the number of words, the names of each shard's files, and each file's entry."""

    n_words: int
    shards: dict[str, list[list[str]]]
    files: dict[str, Any]

    @classmethod
    def of(cls, content: Any, path: Path) -> PackHeader:
        """Check the content of a file.

        Raises:
            UserError: if it is not the header of a pack.
        """
        header = check_object(content, str(path), {"format": int, "words": int, "shards": dict, "files": dict})
        if header["format"] != FORMAT:
            raise UserError(f"{path}: format {header['format']}, but this version reads format {FORMAT}")
        shards = check_object(header["shards"], f"{path}: shards", dict.fromkeys(SPLITS, list))
        for split in SPLITS:
            for names in shards[split]:
                if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                    raise UserError(f"{path}: {split} must be lists of names of files, found {quoted(names)}")
        for name, entry in header["files"].items():
            if name != Path(name).name:
                raise UserError(f"{path}: {quoted(name)} is not the name of a file beside it")
            check_object(entry, f"{path}: {quoted(name)}", {"bytes": int, "sha256": str})
        return cls(header["words"], shards, header["files"])
