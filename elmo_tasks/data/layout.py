"""Where a file of columns has its tokens and tags, and which of its lines are comments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from elmo_tasks.errors import UserError, quoted
from elmo_tasks.values import Column

Separator = Literal["tab"]

LAYOUT_KEYS: dict[str, Any] = {
    "token_column": Column | None,
    "tag_column": Column | None,
    "comment": str | Sequence[str] | None,
    "separator": Separator | None,
}
"""The keys of a reader that say where its columns are, with their annotations."""

Shape = tuple[int, bool]
"""The number of columns of a line, and whether there are tabs in it."""


@dataclass(frozen=True)
class ColumnLayout:
    """Columns are counted from 1, or from -1, which is the last one, backwards.

    Attributes:
        token: column of the token; None is the first one, unless that one has numbers.
        tag: column of the tag.
        tag_is_set: whether the user chose the column of the tag.
        comments: how lines begin that may be comments.
        tabs: whether tabs alone separate columns, so that a column may hold spaces; else spaces do too.
        is_tag: whether a text can be a tag; None where any can.
    """

    token: int | None = None
    tag: int = -1
    tag_is_set: bool = False
    comments: tuple[str, ...] = ()
    tabs: bool = False
    is_tag: Callable[[str], bool] | None = None

    @property
    def token_index(self) -> int:
        """Of the token's column in a list."""
        return _index(self.token or 1)

    @property
    def tag_index(self) -> int:
        """Of the tag's column in a list."""
        return _index(self.tag)

    @property
    def min_columns(self) -> int:
        """Columns that a token's line must have."""
        return max(abs(self.token or 1), abs(self.tag))

    def split(self, line: str) -> list[str]:
        """The columns of a line."""
        if self.tabs:
            return [cell.strip(" ") or cell for cell in line.split("\t")]
        return [column for column in line.replace("\t", " ").split(" ") if column]

    def shape(self, line: str) -> Shape:
        """What the lines of all tokens of a file have in common."""
        return len(self.split(line)), "\t" in line

    def is_comment(self, line: str, shape: Shape | None, where: str) -> bool:
        """Whether a line begins as a comment does and cannot be that of a token, which may begin so too.

        Args:
            line: of a file.
            shape: of the lines that do not begin as a comment does; None if there is none.
            where: file and line, for messages.

        Raises:
            UserError: if it may be either.
        """
        if not self.comments or not line.startswith(self.comments):
            return False
        if self.shape(line) != shape:
            return True
        if self.is_tag is None:
            raise UserError(
                f"{where}: begins as a comment and has as many columns as a token: {quoted(line)}; "
                "set task.reader.comment to what comments alone begin with, or leave it out"
            )
        return not self.is_tag(self.split(line)[self.tag_index])

    def check_apart(self, width: int, where: str) -> None:
        """Check that token and tag are not the same one of so many columns.

        Raises:
            UserError: if they are.
        """
        if self.token_index % width == self.tag_index % width:
            n = self.tag_index % width + 1
            raise UserError(
                f"{where}: column {n} of {width} is both the token's and the tag's; set task.reader.token_column and "
                "task.reader.tag_column, counted from 1, to two columns"
            )

    def remedy(self, width: int, *, comments: bool, word: int = 2) -> str:
        """What a user can type for a file whose first column has numbers.

        Args:
            width: columns of the file.
            comments: whether it has those of CoNLL-U.
            word: the column of the words.
        """
        if width <= word:
            return "expected a column of words and one of tags"
        tag = word + 1 if width < 8 else 5 if width >= 14 else 4  # CoNLL-X, -U and -2008; CoNLL-2009
        keys = f"task.reader.token_column={word}"
        if self.is_tag is None:
            keys += f" task.reader.tag_column={tag}"
        if comments:
            keys += " \"task.reader.comment='#'\""
        if self.is_tag is not None:
            return f"add {keys}" + ("" if self.tag_is_set else ", and task.reader.tag_column=N if the tag is not last")
        return f"add, for example, {keys}" + (f", or make a file of words and tags with: {_CUT}" if comments else "")


_CUT = r"grep -v '^#\|^[0-9]*[-.]' FILE | cut -f2,4"


FIRST_AND_LAST = ColumnLayout()
"""The token first, the tag last."""


def _index(column: int) -> int:
    return column - 1 if column > 0 else column


def make_layout(
    token: int | None,
    tag: int | None,
    default_tag: int,
    comment: str | Sequence[str] | None,
    separator: Separator | None,
    is_tag: Callable[[str], bool] | None,
) -> ColumnLayout:
    """The layout that a reader's keys describe; None is a key that is not set."""
    comments = () if comment is None else (comment,) if isinstance(comment, str) else tuple(comment)
    return ColumnLayout(token, tag or default_tag, tag is not None, comments, separator == "tab", is_tag)
