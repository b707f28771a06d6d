"""The interface of readers, which turn files, hub rows or a user's own input into items, and items into a batch."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from elmo_tasks.data.batching import item_lengths
from elmo_tasks.data.fields import as_tokens
from elmo_tasks.data.text import check_encoding
from elmo_tasks.data.tokens import split_words
from elmo_tasks.errors import UserError, shortened

Item = TypeVar("Item")

_PIECE = re.compile(r"\S+")

ID = "id"
"""The field of a user's own input that names the item; predictions repeat it."""


class Reader(ABC, Generic[Item]):
    """Base of all readers.

    A reader is used in this order: read the splits (in any order), :meth:`fit` on the training items, :meth:`check` the
    others, :meth:`model_parts`, then :meth:`collate`. To predict without training data, :meth:`restore` takes the place
    of :meth:`fit`, and :meth:`from_json` that of the files.

    Args:
        encoding: of the files, a name that Python knows, such as ``latin-1``.

    Attributes:
        left_out: how many items were skipped, and other counts, by reason; recorded in the row.
        longest: of the items read from files or rows so far, the tokens of the longest one and its place.
    """

    documents: ClassVar[bool] = False
    """Whether an item is a document of any number of sentences: a batch is one document, a row of it a sentence."""

    takes_tokens: ClassVar[bool] = True
    """Whether :meth:`from_json` takes a list of tokens in place of text."""

    fields: ClassVar[Mapping[str, str]]
    """The fields of an item that :meth:`from_json` takes, each with a description."""

    changeable: ClassVar[Mapping[str, Any]] = {"encoding": str}
    """The constructor's keys that say how files are read, not what is learned: they may have other values when a
    finished run is used. Each with its annotation there."""

    def __init__(self, *, encoding: str = "utf-8") -> None:
        self.encoding = check_encoding(encoding)
        self.left_out: dict[str, int] = {}
        self.longest = (0, "")

    @classmethod
    def after_training(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The constructor's values for the use of a finished run that was trained with some others."""
        return dict(settings)

    def token(self, text: str) -> str:
        """What the model reads for a token of the data: :meth:`read_file` and :meth:`from_json` both ask for it here.

        Readers of treebanks undo the escapes.
        """
        return text

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a raw text, as the model reads them. What :meth:`token` would change is a token of the data."""
        tokens: list[str] = []
        start = 0
        for piece in _PIECE.finditer(text):
            token = self.token(piece[0])
            if token != piece[0]:
                tokens += [*split_words(text[start : piece.start()]), token]
                start = piece.end()
        return tokens + split_words(text[start:])

    @abstractmethod
    def read_file(self, path: Path, split: str) -> list[Item]:
        """All items of one file (or folder).

        Raises:
            UserError: naming file and line.
        """

    def list_files(self, folder: Path) -> list[Path]:
        """The files of a folder that :meth:`read_file` reads, in its order; the data's digest is that of these.

        Raises:
            UserError: if there are none, or the format has no folders.
        """
        raise UserError(f"{folder}: a folder; expected a file")

    def division(self, folder: Path) -> str | None:
        """How :meth:`read_file` divides a folder that holds all splits; part of the digest of the data.

        Returns:
            a text that differs if the same files, in the same order, would be divided differently (their sections, for
            the Treebank); None where each split has files of its own.
        """
        return None

    @abstractmethod
    def texts(self, item: Item) -> list[list[str]]:
        """The item's token lists, the very ones that the biLM reads."""

    def fit(self, train: Sequence[Item]) -> None:
        """Learn label sets and the like from all training items."""

    def check(self, items: Sequence[Item], split: str) -> None:
        """Compare the items of another split with what :meth:`fit` learned; count or refuse what is unknown."""

    def model_parts(self) -> dict[str, Any]:
        """Arguments of the model's constructor that depend on the training data."""
        return {}

    def state(self) -> dict[str, Any]:
        """What :meth:`fit` has learned, as plain JSON."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what :meth:`state` returned.

        Raises:
            UserError: if it is not the state of such a reader.
        """
        if state:
            raise UserError(f"the state of a reader has {', '.join(state)}; {type(self).__name__} expects nothing")

    def group(self, item: Item) -> Hashable:
        """Items of one group stay together where dev is cut off train; by default each item is its own."""
        return id(item)

    def parts(self, item: Item) -> list[Item]:
        """What a finished run reads of an item: the item itself, or windows of one that is too long.

        The prediction of the window with the highest score is then that of the item (see
        :class:`~elmo_tasks.models.base.Scored`).
        """
        return [item]

    def vary(self, item: Item, rng: Random) -> Item:
        """A training item as this epoch sees it, such as a part of a long document."""
        return item

    def n_rows(self, item: Item) -> int:
        """How often the model reads an item's texts in one pass: in SRL a sentence, once for each predicate."""
        return 1

    @abstractmethod
    def collate(self, items: list[Item], texts: list[Any]) -> Any:
        """A batch from items and their :class:`~elmo_tasks.batch.Text`, one for each of :meth:`texts`.

        Items from :meth:`from_json` have no gold: their batch can be decoded, but has no loss that means anything.
        """

    @abstractmethod
    def from_json(self, fields: Mapping[str, Any], where: str) -> Item:
        """An item without gold from a user's own input.

        Args:
            fields: some of :attr:`fields`.
            where: what the input is, for messages.

        Raises:
            UserError: if a field is missing, unknown or of another type.
        """

    @abstractmethod
    def to_json(self, item: Item, prediction: Any) -> dict[str, Any]:
        """What the model's ``decode`` gave for an item, in words, as plain JSON."""

    def _sentence(self, value: Any, where: str) -> list[str]:
        """The tokens of a user's sentence, a list of them or a text, as the model reads them.

        Raises:
            UserError: if it is neither, or has no token.
        """
        return as_tokens(value, where, self.token, self.tokenize)

    def _at(self, where: str, item: Item) -> Item:
        """The item; its place is remembered if it is the longest so far."""
        n_tokens = sum(item_lengths(self, item))
        if n_tokens > self.longest[0]:
            self.longest = n_tokens, where
        return item

    def _count(self, reason: str, n: int = 1) -> None:
        """Add to :attr:`left_out`."""
        if n:
            self.left_out[reason] = self.left_out.get(reason, 0) + n

    def _check_fields(self, fields: Mapping[str, Any], where: str, optional: Sequence[str] = ()) -> None:
        """Check that all fields are there, and no others except :data:`ID`.

        Raises:
            UserError: if not.
        """
        missing = [name for name in self.fields if name not in fields and name not in optional]
        unknown = [name for name in fields if name not in self.fields and name != ID]
        if missing or unknown:
            expected = ", ".join(f"{name} ({what})" for name, what in self.fields.items())
            found = shortened(", ".join(map(str, fields)), 40) or "nothing"
            raise UserError(f"{where}: expected the fields {expected}; found {found}")


@runtime_checkable
class HubReader(Protocol[Item]):
    """A reader whose task has a copy on the public hub."""

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[Item]:
        """All items of one hub split.

        Raises:
            UserError: naming the row.
        """
