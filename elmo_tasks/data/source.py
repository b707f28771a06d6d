"""Where a task's items come from: files in the original formats, or the public hub's copies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from elmo_tasks.data.files import find_matches
from elmo_tasks.data.leaks import refuse_leaks
from elmo_tasks.data.reader import Reader
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.files import digest_files, digest_training

SPLITS = ("train", "dev", "test")


class Source(Protocol):
    """Where the items of some splits come from.

    Attributes:
        digest: of the content of train and dev, all that training and the choice of the checkpoint depend on.
        test_digest: of the content of test; None where there is no such split.
        key: the part of the configuration that names the splits.
    """

    key: str
    digest: str
    test_digest: str | None

    @property
    def splits(self) -> list[str]:
        """The splits that are there."""

    def read(self, reader: Reader[Any], split: str) -> list[Any]:
        """All items of a split, one at least.

        Raises:
            UserError: for bad input, and if there is no item.
        """

    def check_unchanged(self) -> None:
        """Check that what was read is what the digests are of.

        Raises:
            UserError: if the content has changed since.
        """


class Files:
    """One file a split, below a root folder.

    Args:
        root: the folder.
        files: path or pattern (``train*.jsonl``) of each split; None where a set has no such split. A missing test file
            is an error only when the test set is to be scored. No other split may have a file of train.
        reader: lists the files of a folder. If it divides the folder of train (see :meth:`Reader.division`), all splits
            must be that folder.
        key: the name of ``files`` in the configuration, for messages.

    Raises:
        UserError: if the root or a file is missing, a pattern matches several files, a training file is in another
            split, or only some of the splits are a folder that is to be divided.
    """

    def __init__(
        self,
        root: str | None,
        files: Mapping[str, str | None],
        reader: Reader[Any],
        key: str = "task.files",
    ) -> None:
        self.key = key
        if root is None:
            raise UserError("data.root is not set; add data.root=DIR to the command line")
        if not Path(root).is_dir():
            raise UserError(f"data.root={root}: no such folder")
        for split in SPLITS:
            if not isinstance(files.get(split), str | None) or files.get(split) == "":
                raise UserError(f"{key}.{split} must be a path or pattern, or null, found {quoted(files[split])}")
        if files.get("train") is None:
            raise UserError(f"{key}.train must be a path or pattern, found null")
        named = [split for split in SPLITS if files.get(split) is not None]
        found = {split: _find(Path(root), str(files[split]), split, key) for split in named}
        self.paths = {split: path for split, path in found.items() if path is not None}
        contents = {s: reader.list_files(path) if path.is_dir() else [path] for s, path in self.paths.items()}
        divided = reader.division(self.paths["train"]) if self.paths["train"].is_dir() else None
        if divided is None:
            refuse_leaks(contents)
        else:
            self._check_one_folder()
        self._contents, self._division = contents, (divided or "").encode()
        self.digest, self.test_digest = self._digests()

    def _digests(self) -> tuple[str, str | None]:
        contents, also = self._contents, self._division
        training = digest_training(contents["train"], contents.get("dev", []), also)
        return training, digest_files(contents["test"], also) if "test" in contents else None

    def check_unchanged(self) -> None:
        """A run may wait for another one between its start, when it gets its name, and its reading of the files."""
        if self._digests() != (self.digest, self.test_digest):
            raise UserError(f"{self.paths['train'].parent}: the files have changed since the run began; start it again")

    def _check_one_folder(self) -> None:
        """Check that the folder of train, which is divided into splits, is that of the other splits."""
        folder = self.paths["train"]
        for split in SPLITS[1:]:
            other = self.paths.get(split)
            if (split == "dev" and other is None) or (other is not None and other.resolve() != folder.resolve()):
                raise UserError(
                    f"{self.key}.train is the folder {folder}, which is divided into train, dev and test, but "
                    f"{self.key}.{split} is {other or 'null'}; expected the same folder, or a file for each split"
                )

    @property
    def splits(self) -> list[str]:
        """The splits that are there."""
        return list(self.paths)

    def read(self, reader: Reader[Any], split: str) -> list[Any]:
        """All items of a split, one at least."""
        path = self.paths[split]
        items = reader.read_file(path, split)
        if not items:
            raise UserError(f"{path}: nothing to use in it; expected the {split} split")
        return items


def _find(root: Path, pattern: str, split: str, key: str) -> Path | None:
    """The one file (or the one folder) that a path or pattern means; None if test has none."""
    if (root / pattern).exists():
        return root / pattern
    paths = [] if Path(pattern).is_absolute() else find_matches(root, pattern, f"{key}.{split}")
    if len(paths) > 1:
        names = shortened(" and ".join(path.name for path in paths), 100)
        raise UserError(f"{root / pattern}: {names} match, but one is expected; set {key}.{split} to one of them")
    if not paths and split != "test":
        raise UserError(f"{root / pattern}: no such file; set data.root, or {key}.{split} to its place below data.root")
    return paths[0] if paths else None
