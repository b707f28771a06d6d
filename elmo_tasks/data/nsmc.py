"""The Naver sentiment movie corpus: Korean comments on films, positive or negative."""

from __future__ import annotations

import re
from pathlib import Path
from unicodedata import normalize

from elmo_tasks.data.labelled import LabelledReader, LabelledText
from elmo_tasks.data.text import check_tokens, read_lines
from elmo_tasks.data.tokens import MARKED_WORD, with_few_marks
from elmo_tasks.errors import UserError, quoted

COLUMNS = ("id", "document", "label")
LABELS = ("0", "1")

_TOKEN = re.compile(
    rf"""
    \d+(?:[.,:]\d+)*(?:{MARKED_WORD})?                        # 3.5점, 2015년, 9,800명의, 2:0으로
  | {MARKED_WORD}(?:[-.'&/](?=[A-Za-z0-9]){MARKED_WORD})*     # 재밌다ㅋㅋ, U-21, TCP/IP, R&B; jamo are letters too
  | (\S)\1*                                                   # a run of one character
    """,
    re.VERBOSE,
)
_PLAIN = (
    {0xFF01 + k: 0x21 + k for k in range(94)}  # full-width ASCII
    | dict.fromkeys(map(ord, "\u2018\u2019\u201b`\u00b4"), "'")
    | dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"')
    | {ord("\u2026"): "...", ord("\u2014"): "--", ord("\u2013"): "-"}
    | dict.fromkeys([0x00AD, 0x200B, 0xFEFF])  # soft hyphen, zero-width space, byte order mark: removed
)


class NsmcReader(LabelledReader):
    """Reads the official files: a header, then ``id``, ``document`` and ``label`` with tabs between.

    Labels are 0 (negative) and 1 (positive). Quotation marks are part of the comment: there is no quoting. Comments
    without a single token (the official files have some that are empty) are left out and counted.
    """

    labels = ("negative", "positive")

    def read_file(self, path: Path, split: str) -> list[LabelledText]:
        """All comments of a file; empty lines are skipped."""
        lines = read_lines(path, encoding=self.encoding)
        _, header = next(lines, (1, ""))
        if tuple(header.rstrip().split("\t")) != COLUMNS:
            expected = f"expected the header {', '.join(COLUMNS)} with tabs between"
            raise UserError(f"{path}:1: {expected}, found {quoted(header)}")
        items: list[LabelledText] = []
        seen: dict[str, int] = {}
        for number, line in lines:
            if not line.strip():
                continue
            where = f"{path}:{number}"
            name, document, label = _columns(line, where)
            if seen.setdefault(name, number) != number:
                raise UserError(f"{where}: id {quoted(name)} is also in line {seen[name]}")
            tokens = tokenize_korean(document)
            if not tokens:
                self._count("empty comments")
                continue
            check_tokens(tokens, where)
            items.append(self._at(where, LabelledText(tokens, LABELS.index(label))))
        return items

    def token(self, text: str) -> str:
        """The token in the spelling of :func:`tokenize_korean`, not cut any further."""
        tokens = tokenize_korean(text)
        return tokens[0] if len(tokens) == 1 else _plain(text)

    def tokenize(self, text: str) -> list[str]:
        return tokenize_korean(text)


def _columns(line: str, where: str) -> list[str]:
    """The three columns of one line; spaces and tabs after the label are ignored."""
    columns = line.split("\t")
    while len(columns) > len(COLUMNS) and not columns[-1].strip():
        columns.pop()
    columns[-1] = columns[-1].strip()
    if len(columns) != len(COLUMNS):
        raise UserError(
            f"{where}: expected {len(COLUMNS)} columns ({', '.join(COLUMNS)}) with tabs between, "
            f"found {len(columns)}: {quoted(line)}"
        )
    if columns[-1] not in LABELS:
        raise UserError(f"{where}: label {quoted(columns[-1])} is not one of {', '.join(LABELS)}")
    return columns


def tokenize_korean(text: str) -> list[str]:
    """Eojeol (the units between spaces), with numbers and punctuation split off; particles stay on their nouns.

    It is separate from the tokeniser of ``data/tokens.py``, whose tokens are literal stretches of the text and whose
    rules for clitics and hyphens are English. Here the spelling is normalised (NFC, full-width ASCII as ASCII, straight
    quotation marks), a run of one character is one token and is cut at three (``!!!!!`` is ``!!!``), and a number keeps
    its unit (``3.5점``), so that a comment looks like the tokenised Korean text that a biLM is trained on; such text
    itself stays as it is.
    """
    plain = _plain(text)
    tokens = [
        (plain[match.start() : match.end()], match[1]) for match in _TOKEN.finditer(with_few_marks(plain) or plain)
    ]
    return [token if repeated is None else token[:3] for token, repeated in tokens]


def _plain(text: str) -> str:
    """The text in the spelling that tokens have."""
    return normalize("NFC", text).translate(_PLAIN)
