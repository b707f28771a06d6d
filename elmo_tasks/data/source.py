"""Where a task's items come from: files in the original formats, or the public hub's copies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any, Protocol, runtime_checkable

from elmo_tasks.data.text import files_below
from elmo_tasks.errors import UserError

SPLITS = ("train", "dev", "test")


class Reader(Protocol):
    """A task's reader: turns files or hub rows into items of its own type, and items into a batch."""

    left_out: dict[str, int]
    """How many items were passed over, or what else is to be known of them, by reason; goes into the row."""

    def read_file(self, path: Path, split: str) -> list[Any]:
        """All items of one file; raises UserError with file and line."""

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[Any]:
        """All items of one hub split."""

    def texts(self, item: Any) -> list[list[str]]:
        """The item's token lists, the very ones that the biLM reads."""

    def model_parts(self, train: list[Any]) -> dict[str, Any]:
        """Learn label sets from the training items; what the model must know of the data."""

    def collate(self, items: list[Any], texts: list[Any]) -> Any:
        """A batch from items and their :class:`~elmo_tasks.batch.Text`, one for each of :meth:`texts`."""


@runtime_checkable
class DocumentReader(Reader, Protocol):
    """A reader whose items are documents of any number of sentences: a batch is one document, a row a sentence."""

    def vary(self, item: Any, chance: Random) -> Any:
        """A training document as this epoch sees it, such as a part of a long one."""


class Files:
    """One file a split, below a root folder.

    Args:
        root: the folder.
        files: path or pattern (``train*.jsonl``) of each split; None where a set has no such split. A test file that is
            not there is only missed when the test set is to be scored.
    """

    def __init__(self, root: str | None, files: Mapping[str, str]) -> None:
        if root is None:
            raise UserError("data.root is not set; add data.root=DIR to the command line")
        if not Path(root).is_dir():
            raise UserError(f"data.root={root}: no such folder")
        found = {split: _find(Path(root), files[split], split) for split in SPLITS if files[split] is not None}
        self.paths = {split: path for split, path in found.items() if path is not None}
        self.digest = digest_files(file for path in self.paths.values() for file in _files_of(path))

    @property
    def splits(self) -> list[str]:
        """The splits that are there."""
        return list(self.paths)

    def read(self, reader: Reader, split: str) -> list[Any]:
        """All items of a split."""
        path = self.paths[split]
        items = reader.read_file(path, split)
        if not items:
            raise UserError(f"{path}: nothing to use in it; expected the {split} split")
        return items


class Hub:
    """A data set of the public hub, or a local folder of parquet or JSON files in the same schema."""

    def __init__(self, *, id: str, splits: Mapping[str, str]) -> None:
        try:
            import datasets
        except ImportError as error:
            raise UserError("data=hub needs the extra `hub`: pip install -e '.[hub]'") from error
        self.id, self._splits = id, splits
        try:
            self._data = datasets.load_dataset(id)
        except Exception as error:  # the library raises a dozen types for "not there" and "offline"
            raise UserError(f"data=hub: {id} cannot be loaded ({type(error).__name__}: {error})") from error
        for split, name in splits.items():
            if name not in self._data:
                raise UserError(f"data=hub: {id} has no split {name!r} for {split}; it has {', '.join(self._data)}")
        sha = hashlib.sha256()
        for split in splits:
            for row in self._rows(split):
                sha.update(json.dumps(row, sort_keys=True, default=str).encode())
        self.digest = sha.hexdigest()[:16]

    @property
    def splits(self) -> list[str]:
        """The splits that are there."""
        return list(self._splits)

    def read(self, reader: Reader, split: str) -> list[Any]:
        """All items of a split."""
        where = f"{self.id} ({self._splits[split]})"
        items = reader.read_rows(self._rows(split), where, split)
        if not items:
            raise UserError(f"data=hub: nothing to use in {where}; expected the {split} split")
        return items

    def _rows(self, split: str) -> Iterator[Mapping[str, Any]]:
        yield from self._data[self._splits[split]]


def open_source(sources: Mapping[str, Any], hub: bool, root: str | None) -> Files | Hub:
    """The files below ``root``, or the public hub's copy, that a task's configuration names."""
    return Hub(**sources) if hub else Files(root, sources)


def share(items: list[Any], fraction: float, seed: int) -> list[Any]:
    """A share of some items in their order, one at least; the same ones for one seed."""
    if fraction == 1:
        return items
    kept = sorted(Random(seed).sample(range(len(items)), max(1, round(len(items) * fraction))))
    return [items[k] for k in kept]


def _find(root: Path, pattern: str, split: str) -> Path | None:
    """The one file (or, for readers of folders, the one folder) that a path or pattern means."""
    if (root / pattern).exists():
        return root / pattern
    paths = [] if Path(pattern).is_absolute() else sorted(root.glob(pattern))
    if len(paths) > 1:
        names = " and ".join(path.name for path in paths)
        raise UserError(f"{root / pattern}: {names} both match; set task.files.{split} to one of them")
    if not paths and split != "test":
        raise UserError(
            f"{root / pattern}: no such file; set data.root, or task.files.{split} to its place below data.root"
        )
    return paths[0] if paths else None


def _files_of(path: Path) -> list[Path]:
    """The file, or all files of a folder."""
    return [path] if path.is_file() else [file for file in files_below(path) if file.is_file()]


def digest_files(paths: Iterable[Path]) -> str:
    """Fingerprint of the contents of some files, in order.

    Raises:
        UserError: naming the first that is no file or cannot be read.
    """
    sha = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                sha.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise UserError(f"{path}: cannot be read as a file ({error.strerror})") from error
    return sha.hexdigest()[:16]
