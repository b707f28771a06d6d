"""The Naver sentiment movie corpus: Korean comments on films, positive or negative."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unicodedata import normalize

from elmo_tasks.batch import Text
from elmo_tasks.data.labelled import LabelledBatch, LabelledText
from elmo_tasks.data.text import check_tokens, read_lines
from elmo_tasks.errors import UserError

COLUMNS = ("id", "document", "label")
LABELS = ("0", "1")

_LETTER = r"[^\W_]"  # letters and digits of any script; single jamo (ㅋㅋ, ㅠㅠ) are letters too
_TOKEN = re.compile(
    rf"""
    \d+(?:[.,:]\d+)*{_LETTER}*                          # 3.5점, 2015년, 9,800명의, 2:0으로
  | {_LETTER}+(?:[-.'&/](?=[A-Za-z0-9]){_LETTER}+)*     # 재밌다ㅋㅋ, U-21, TCP/IP, R&B
  | (\S)\1*                                             # a run of one sign
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


class NsmcReader:
    """Reads the official files: a header, then ``id``, ``document`` and ``label`` with tabs between.

    Labels are 0 (negative) and 1 (positive). A quotation mark is one of the comment's, there is no quoting. Comments
    without a single token (the official files have some that are empty) are left out and counted.
    """

    def __init__(self) -> None:
        self.left_out: dict[str, int] = {}

    def read_file(self, path: Path, split: str) -> list[LabelledText]:
        """All comments of a file; empty lines are passed over."""
        lines = read_lines(path)
        _, header = next(lines, (1, ""))
        if tuple(header.split("\t")) != COLUMNS:
            raise UserError(f"{path}:1: expected the header {', '.join(COLUMNS)} with tabs between, found {header!r}")
        items: list[LabelledText] = []
        seen: dict[str, int] = {}
        for number, line in lines:
            if not line:
                continue
            where = f"{path}:{number}"
            name, document, label = _columns(line, where)
            if seen.setdefault(name, number) != number:
                raise UserError(f"{where}: id {name!r} is also in line {seen[name]}")
            tokens = tokenize_korean(document)
            if not tokens:
                self.left_out["empty comments"] = self.left_out.get("empty comments", 0) + 1
                continue
            check_tokens(tokens, where)
            items.append(LabelledText(tokens, LABELS.index(label)))
        return items

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[LabelledText]:
        """The hub's copies are not read (``hub: null`` in the task's configuration)."""
        raise NotImplementedError

    def texts(self, item: LabelledText) -> list[list[str]]:
        return [item.tokens]

    def model_parts(self, train: list[LabelledText]) -> dict[str, Any]:
        """The number of classes."""
        return {"n_labels": len(LABELS)}

    def collate(self, items: list[LabelledText], texts: list[Text]) -> LabelledBatch:
        """Labels of some comments."""
        return LabelledBatch.of(items, texts[0])


def _columns(line: str, where: str) -> list[str]:
    """The three columns of one line."""
    columns = line.split("\t")
    if len(columns) != len(COLUMNS):
        raise UserError(
            f"{where}: expected {len(COLUMNS)} columns ({', '.join(COLUMNS)}) with tabs between, "
            f"found {len(columns)}: {line!r}"
        )
    if columns[-1] not in LABELS:
        raise UserError(f"{where}: label {columns[-1]!r} is not one of {', '.join(LABELS)}")
    return columns


def tokenize_korean(text: str) -> list[str]:
    """Eojeol (what stands between spaces) with numbers and signs apart; particles stay on their nouns.

    Beside the English tokeniser of ``data/tokens.py`` rather than in it: there a token is a literal stretch of the
    text, and clitics and hyphens are English. Here the spelling is made even (NFC, full-width ASCII as ASCII, straight
    quotation marks), a run of one sign is one token and is cut at three (``!!!!!`` is ``!!!``), and a number keeps its
    unit (``3.5점``), so that a comment looks like the tokenised Korean text that a biLM is trained on; such text
    itself stays as it is.
    """
    plain = normalize("NFC", text).translate(_PLAIN)
    return [match[0] if match[1] is None else match[0][:3] for match in _TOKEN.finditer(plain)]
