"""Column files: a token a line, its annotations in further columns, a blank line after each sentence (CoNLL)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elmo_tasks.data.text import check_tokens, read_lines
from elmo_tasks.errors import UserError, quoted

DOCUMENT = "-DOCSTART-"
_METADATA = re.compile(r"# \S+( id)? = |# new(doc|par)\s*$")  # of CoNLL-U, such as: # sent_id = 1
_NUMBERED = re.compile(r"1(-\d+)?(\t[^\t]+){9}$")  # its first token, or that of CoNLL-X, without such lines


@dataclass
class ColumnSentence:
    """``rows[k]`` has the columns of token k, which is on line ``line + k`` of ``path``."""

    path: Path
    line: int
    rows: list[list[str]]

    @property
    def tokens(self) -> list[str]:
        """The first column."""
        return [row[0] for row in self.rows]

    def where(self, k: int = 0) -> str:
        """File and line of token k, for messages."""
        return f"{self.path}:{self.line + k}"

    def check(self) -> None:
        """Check each token (see :func:`check_tokens`).

        Raises:
            UserError: naming file and line of a bad one.
        """
        for k, token in enumerate(self.tokens):
            check_tokens([token], self.where(k))


def read_column_sentences(path: Path, min_columns: int, encoding: str | None = None) -> Iterator[ColumnSentence]:
    """All sentences of a file; document lines are skipped. A line that has only white space ends a sentence.

    Raises:
        UserError: naming file and line, if a line has too few columns, another number than the first token (a space
            within a token separates too) or a bad token, or the file is CoNLL-U.
    """
    rows: list[list[str]] = []
    start, width, first = 1, 0, 0
    for number, line in read_lines(path, encoding=encoding):
        columns = [column for column in line.replace("\t", " ").split(" ") if column]
        if not columns or columns[0] == DOCUMENT:
            if rows:
                yield _sentence(path, start, rows)
            rows, start = [], number + 1
            continue
        if len(columns) < min_columns:
            expected = f"expected at least {min_columns} columns"
            raise UserError(f"{path}:{number}: {expected}, found {len(columns)}: {quoted(line)}")
        if not rows and (_METADATA.match(line) or (not width and _NUMBERED.match(line))):
            raise UserError(
                f"{path}:{number}: CoNLL-U or CoNLL-X, whose first column has no words; "
                "make a file of words and tags with: "
                r"grep -v '^#\|^[0-9]*[-.]' FILE | cut -f2,4"
            )
        if len(columns) != (width or len(columns)):
            expected = f"expected {width} columns, as in line {first}"
            raise UserError(f"{path}:{number}: {expected}, found {len(columns)}: {quoted(line)}")
        width, first = len(columns), first or number
        rows.append(columns)
    if rows:
        yield _sentence(path, start, rows)


def _sentence(path: Path, start: int, rows: list[list[str]]) -> ColumnSentence:
    sentence = ColumnSentence(path, start, rows)
    sentence.check()
    return sentence
