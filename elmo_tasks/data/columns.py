"""Column files: a token a line, its annotations in further columns, a blank line after each sentence (CoNLL)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from elmo_tasks.data.layout import FIRST_AND_LAST, ColumnLayout
from elmo_tasks.data.numbering import EXTRA, N_EVIDENCE, are_numbered, counts
from elmo_tasks.data.text import check_tokens, read_lines
from elmo_tasks.errors import UserError, quoted, shortened

DOCUMENT = "-DOCSTART-"
METADATA = re.compile(r"# \S+( id)? = |# new(doc|par)\s*$")  # of CoNLL-U, such as: # sent_id = 1
NO_WORDS = "CoNLL-U or CoNLL-X, whose first column has no words"
_WIDE = 10  # columns of the formats whose words have no spaces: CoNLL-X and the later ones
_NUMBERED = re.compile(r"1(-\d+)?(\t[^\t]+){9}$")  # its first token, or that of CoNLL-X, without such lines


@dataclass
class ColumnSentence:
    """``rows[k]`` has the columns of token k, which is on line ``numbers[k]`` of ``path``."""

    path: Path
    numbers: Sequence[int]
    rows: list[list[str]]
    layout: ColumnLayout = FIRST_AND_LAST

    @property
    def tokens(self) -> list[str]:
        """The column of the tokens."""
        return [row[self.layout.token_index] for row in self.rows]

    @property
    def tags(self) -> list[str]:
        """The column of the tags."""
        return [row[self.layout.tag_index] for row in self.rows]

    def where(self, k: int = 0) -> str:
        """File and line of token k, for messages."""
        return f"{self.path}:{self.numbers[k]}"

    def check(self) -> None:
        """Check each token (see :func:`check_tokens`).

        Raises:
            UserError: naming file and line of a bad one.
        """
        for k, token in enumerate(self.tokens):
            check_tokens([token], self.where(k))


def read_column_sentences(
    path: Path, min_columns: int, encoding: str | None = None, layout: ColumnLayout = FIRST_AND_LAST
) -> Iterator[ColumnSentence]:
    """All sentences of a file; document lines are skipped. A line that has only white space, of any kind, ends one.

    Where the first column counts the tokens, CoNLL-U's lines of ranges (1-2) and empty nodes (1.1) are no tokens.

    Args:
        path: of the file.
        min_columns: of a token.
        encoding: of the file.
        layout: where the columns are. Where it does not say which one the token's is, that is the first one, and a file
            that counts its tokens there is refused (see :func:`are_numbered`).

    Raises:
        UserError: naming file and line, if a line has too few columns, another number than the first token (a space
            within a token separates too) or a bad token, or the first column has no words.
    """
    sentences = _Lines(path, min_columns, encoding, layout).sentences()
    first: list[ColumnSentence] = []
    try:
        first += islice(sentences, N_EVIDENCE)
    except UserError:
        _refuse_numbers(first, layout)  # such files are ragged too
        raise
    _refuse_numbers(first, layout)
    for sentence in chain(first, sentences):
        sentence.check()
        yield sentence


class _Lines:
    """The lines of a file, sorted into sentences."""

    def __init__(self, path: Path, min_columns: int, encoding: str | None, layout: ColumnLayout) -> None:
        self.path, self.encoding, self.layout = path, encoding, layout
        self.min_columns = max(min_columns, layout.min_columns)
        self.first: tuple[int, str] | None = None  # the first token's line
        self.width = 0

    def sentences(self) -> Iterator[ColumnSentence]:
        rows: list[list[str]] = []
        numbers: list[int] = []
        for number, line in chain(self._tokens(), [(0, "")]):
            if line and line.split(maxsplit=1)[0] != DOCUMENT:
                columns = self.layout.split(line)
                self._check(number, line, columns, rows)
                rows.append(columns)
                numbers.append(number)
            elif rows:
                yield self._sentence(numbers, rows)
                rows, numbers = [], []

    def _tokens(self) -> Iterator[tuple[int, str]]:
        """Numbers and lines without comments; one of white space is empty."""
        shape = self._shape() if self.layout.comments else None
        for number, line in read_lines(self.path, encoding=self.encoding):
            if not line.strip():
                yield number, ""
            elif not self.layout.is_comment(line, shape, f"{self.path}:{number}"):
                yield number, line

    def _shape(self) -> tuple[int, bool] | None:
        """That of the first line that cannot be a comment."""
        for _, line in read_lines(self.path, encoding=self.encoding):
            if line.strip() and not line.startswith((DOCUMENT, *self.layout.comments)):
                return self.layout.shape(line)
        return None

    def _check(self, number: int, line: str, columns: list[str], before: list[list[str]]) -> None:
        """Check a token's line; ``before`` are the rows of its sentence so far."""
        where = f"{self.path}:{number}"
        if self.layout.token is None and not before:
            self._refuse_conll_u(line, where)
        if len(columns) < self.min_columns:
            expected = f"expected at least {self.min_columns} columns"
            raise UserError(f"{where}: {expected}, found {len(columns)}: {quoted(line)}{self._hint(line)}")
        if self.first is None:
            self.first, self.width = (number, line), len(columns)
            self.layout.check_apart(len(columns), where)
        width = len(before[0]) if before else self.width
        if len(columns) != width and (before or not self._may_begin(line, columns)):
            expected = f"expected {width} columns, as in line {self.first[0]}"
            raise UserError(f"{where}: {expected}, found {len(columns)}: {quoted(line)}{self._hint(line)}")

    def _refuse_conll_u(self, line: str, where: str) -> None:
        """Refuse a file by its first line, or by a comment of CoNLL-U, after which a sentence may be malformed."""
        is_comment = METADATA.match(line) is not None
        if (is_comment and self._is_numbered()) or (self.first is None and _NUMBERED.match(line)):
            raise UserError(f"{where}: {NO_WORDS}; {self.layout.remedy(10, comments=is_comment)}")

    def _is_numbered(self) -> bool:
        """Whether the first line that is no comment begins with a number."""
        lines = (line for _, line in read_lines(self.path, encoding=self.encoding))
        return re.match(r"\d+([-.]\d+)?[ \t]", next((x for x in lines if x.strip() and x[0] != "#"), "")) is not None

    def _hint(self, line: str) -> str:
        """What may help with a line whose columns do not fit."""
        for text in (line, self.first[1] if self.first else ""):
            if (mark := re.match("#+", text)) and not self.layout.comments:
                return f"; \"task.reader.comment='{mark[0]}'\" leaves out comments"
        return "; task.reader.separator=tab if tokens have spaces" if "\t" in line and not self.layout.tabs else ""

    def _may_begin(self, line: str, columns: list[str]) -> bool:
        """Whether a sentence may have another number of columns, as in CoNLL-2009, which counts its tokens.

        A word with a space in it must not be taken for two columns.
        """
        has_no_spaces = len(line.rstrip("\t ").split("\t")) == len(columns) or self.width >= _WIDE
        return self.layout.token_index != 0 and columns[0] in ("0", "1") and has_no_spaces

    def _sentence(self, numbers: list[int], rows: list[list[str]]) -> ColumnSentence:
        """The sentence without CoNLL-U's lines that are no tokens, where its first column counts."""
        extra = [EXTRA.fullmatch(row[0]) is not None for row in rows]
        does_count = self.layout.token_index != 0 and not all(extra) and counts([row[0] for row in rows])
        if len(rows[0]) != self.width and not does_count and self.first:
            expected = f"expected {self.width} columns, as in line {self.first[0]}"
            raise UserError(f"{self.path}:{numbers[0]}: {expected}, found {len(rows[0])}")
        if does_count and any(extra):
            numbers = [number for number, left_out in zip(numbers, extra, strict=True) if not left_out]
            rows = [row for row, left_out in zip(rows, extra, strict=True) if not left_out]
        return ColumnSentence(self.path, numbers, rows, self.layout)


def _refuse_numbers(sentences: list[ColumnSentence], layout: ColumnLayout) -> None:
    if layout.token is None and are_numbered([[row[:3] for row in sentence.rows] for sentence in sentences]):
        rows = sentences[0].rows
        found = shortened(", ".join(row[0] for row in rows[:3]), 40)
        remedy = layout.remedy(len(rows[0]), comments=False, word=3 if "-" in rows[-1][0] else 2)  # 3: WebAnno's
        raise UserError(
            f"{sentences[0].where()}: {NO_WORDS}, or another format that counts them (found {found}); {remedy}"
        )
