"""CoNLL-2012 files: documents of sentences, a token a line, annotations in columns, spans in brackets.

Columns: document, part, token number, word, part of speech, parse bit, predicate lemma, frameset, word sense, speaker,
named entities, one column of arguments for each predicate, coreference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elmo_tasks.data.columns import METADATA, NO_WORDS, ColumnSentence
from elmo_tasks.data.files import files_below
from elmo_tasks.data.numbering import N_EVIDENCE, are_numbered
from elmo_tasks.data.text import read_lines
from elmo_tasks.errors import UserError, quoted, shortened

WORD, LEMMA, FRAMESET, SPEAKER, FIRST_ARGUMENTS = 3, 6, 7, 9, 11
MIN_COLUMNS = FIRST_ARGUMENTS + 1
NO_VALUE = "_"
EMPTY = ("-", "_", "*")
"""How a column marks a missing value: a hyphen or an asterisk in OntoNotes, an underscore or nothing elsewhere."""

_BEGIN = re.compile(r"#begin document \((?P<name>.*)\)(?:;(?: part (?P<part>\d+))?)?\s*$")
_FORMAT = "#begin document (NAME); part 000, rows of document, part, number, word, ..., #end document"
_NUMBERED = re.compile(r"[01](-\d+)?[ \t]+\S+[ \t]")  # a token of CoNLL-U, CoNLL-X or CoNLL-2009
_SPLIT = re.compile(r"(train|dev|test)")
_CELL = re.compile(r"(?P<opened>(?:\([^()*\s]+)*)\*(?P<closed>\)*)$")
_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}

_SLASHED = {"/.", "/?", "/!", "/-", "/,"}
_LANGUAGES = ("arabic", "chinese", "english")  # folders of OntoNotes

LabelledSpan = tuple[int, int, str]
"""First token, token after the last, label."""


class Sentence(ColumnSentence):
    """A sentence with its annotations: columns, and spans in brackets."""

    @property
    def tokens(self) -> list[str]:
        """The words, with brackets in place of ``-LRB-`` and the like."""
        return [unescape_ontonotes(row[WORD]) for row in self.rows]

    def column(self, k: int) -> list[str]:
        """One annotation of all tokens."""
        return [row[k] for row in self.rows]

    def spans(self, column: int, *, nested: bool = False) -> list[LabelledSpan]:
        """The spans of a bracket column, in order of their end.

        Args:
            column: its index.
            nested: whether a span may be within another one.

        Raises:
            UserError: naming file and line, if a cell is malformed or brackets do not pair up.
        """
        spans: list[LabelledSpan] = []
        opened: list[tuple[int, str]] = []
        for k, cell in enumerate(self.column(column)):
            match = _CELL.match("*" if cell in EMPTY else cell)
            if match is None:
                expected = "expected, for example, (ARG0*, *, *) or (V*)"
                raise UserError(f"{self.where(k)}: malformed span {quoted(cell)}; {expected}")
            for label in match["opened"].split("(")[1:]:
                if opened and not nested:
                    both = f"{shortened(label, 40)} begins within {shortened(opened[0][1], 40)}"
                    raise UserError(
                        f"{self.where(k)}: {both}; spans must not overlap; "
                        "task.reader.nested_labels=drop keeps the outer one"
                    )
                opened.append((k, label))
            for _ in match["closed"]:
                if not opened:
                    raise UserError(f"{self.where(k)}: a closing bracket has no opening bracket ({quoted(cell)})")
                begin, label = opened.pop()
                spans.append((begin, k + 1, label))
        if opened:
            place, label = self.where(opened[-1][0]), shortened(opened[-1][1], 40)
            raise UserError(f"{place}: the span {label} is not closed before the sentence ends")
        return spans


@dataclass
class Document:
    """A part of a document."""

    name: str
    part: str
    path: Path
    line: int
    sentences: list[Sentence] = field(default_factory=list)


def read_documents(path: Path, encoding: str | None = None) -> Iterator[Document]:
    """All documents of a file, or of all files of :func:`conll_files` below a folder.

    Raises:
        UserError: naming file and line, if a document does not begin or end, is empty, or has ragged columns.
    """
    for file in conll_files(path):
        yield from _read_file(file, encoding)


def conll_files(path: Path) -> list[Path]:
    """The file itself, or the files below a folder: the first of ``*gold_conll``, ``*_conll``, ``*.conll`` there is.

    Raises:
        UserError: if there is nothing, or a folder has none of them, or those of several languages or splits.
    """
    if path.is_file():
        return [path]
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    files = files_below(path)
    for ending in ("gold_conll", "_conll", ".conll"):
        chosen = [file for file in files if file.name.endswith(ending)]
        if chosen:
            _refuse_languages(chosen, path)
            if ending == ".conll":
                _refuse_splits(chosen, path)
            return chosen
    raise UserError(f"{path}: no file that ends in _conll below this folder, and none in .conll")


def _refuse_languages(files: Sequence[Path], folder: Path) -> None:
    """Check that a folder of OntoNotes is not that of all its languages."""
    found = sorted({part for file in files for part in file.relative_to(folder).parts if part in _LANGUAGES})
    if len(found) > 1:
        raise UserError(f"{folder}: files of {' and '.join(found)}; expected the folder of one language")


def _refuse_splits(files: Sequence[Path], folder: Path) -> None:
    """Check that a folder of files of any name is not that of several splits, each in a file of its own."""
    found = {match[1]: file.name for file in files if (match := _SPLIT.match(file.name))}
    if len(found) > 1:
        raise UserError(
            f"{folder}: {' and '.join(sorted(found.values()))}; expected the folder of one split, or one file"
        )


def unescape_ontonotes(word: str) -> str:
    """Brackets as the text has them; OntoNotes escapes them even within a word, and writes ``/.`` for ``.``."""
    if word in _SLASHED:
        return word[1:]
    for escape, bracket in _ESCAPES.items():
        word = word.replace(escape, bracket)
    return word


def _read_file(path: Path, encoding: str | None) -> Iterator[Document]:
    lines = read_lines(path, encoding=encoding)
    documents = (_document(path, number, line, lines) for number, line in lines if line.strip())
    first: list[Document] = []
    n_sentences = 0
    for document in documents:
        first.append(document)
        n_sentences += len(document.sentences)
        if n_sentences >= N_EVIDENCE:
            break
    _refuse_numbers([sentence for document in first for sentence in document.sentences][:N_EVIDENCE])
    yield from first
    yield from documents


def _refuse_numbers(sentences: Sequence[Sentence]) -> None:
    """Check that the columns of the document and of the word do not count the tokens, as another format's would."""
    for column in (0, WORD) if any(len(sentence.rows) > 1 for sentence in sentences) else ():
        if are_numbered([[[cell, str(k), ""] for k, cell in enumerate(s.column(column))] for s in sentences]):
            found = f"column {column + 1} counts the tokens, as in {NO_WORDS}"
            raise UserError(f"{sentences[0].where()}: {found}; expected CoNLL-2012: {_FORMAT}")


def _document(path: Path, begin: int, line: str, lines: Iterator[tuple[int, str]]) -> Document:
    """The document that begins with ``line``, number ``begin`` of the file; it is read to its end."""
    match = _BEGIN.match(line)
    if match is None:
        _refuse_other_format(line, lines, f"{path}:{begin}")
        raise UserError(f"{path}:{begin}: expected #begin document (NAME); part 000, found {quoted(line)}")
    document = Document(match["name"], match["part"] or "000", path, begin)
    rows: list[list[str]] = []
    for number, line in lines:
        if line.startswith("#begin document"):
            raise UserError(f"{path}:{number}: expected #end document for the document of line {begin} first")
        ended = line.startswith("#end document")
        if line.strip() and not ended:
            rows.append(_cells(line))
            continue
        if rows:
            document.sentences.append(_sentence(path, number - len(rows), rows))
            rows = []
        if ended:
            break
    else:
        raise UserError(f"{path}:{begin}: the file ends without #end document for this document")
    if not document.sentences:
        raise UserError(f"{path}:{begin}: an empty document ({shortened(document.name, 40)})")
    return document


def _refuse_other_format(line: str, more: Iterator[tuple[int, str]], where: str) -> None:
    """Name the format that a file is in by its first lines, if it is a known one."""
    if METADATA.match(line) or _NUMBERED.match(line):
        raise UserError(f"{where}: {NO_WORDS}; expected CoNLL-2012: {_FORMAT}")
    token = next((text for _, text in more if text.strip()), "") if re.match(r"#\s*begin document", line) else ""
    if re.fullmatch(r"\d+\s+\S+\s+\S+\s*", token):
        raise UserError(
            f"{where}: three columns, as in OntoGUM (number, word, mention); put an empty line after each sentence and "
            f"type: {_FROM_THREE_COLUMNS}"
        )


_FROM_THREE_COLUMNS = (
    """(echo "#begin document (NAME)"; awk '/^[0-9]/{print "NAME 0",$1,$2,"- * - - - - *",$3} !NF' FILE; """
    """echo "#end document")"""
)


def _cells(line: str) -> list[str]:
    """The columns of a token: a column between tabs may be empty; spaces separate columns in any number.

    Where tabs separate all columns, a space is part of one, such as a speaker's name.
    """
    cells = line.lstrip(" \t").split("\t")
    if len(cells) >= MIN_COLUMNS:
        return [cell.strip(" ") for cell in cells]
    return [part for cell in cells for part in ([part for part in cell.split(" ") if part] or [""])]


def _sentence(path: Path, line: int, lines: list[list[str]]) -> Sentence:
    """The tokens of a sentence, with ``_`` in empty columns; trailing columns without any value are dropped.

    Raises:
        UserError: naming file and line of a token with too few columns, or more or fewer than the first token.
    """
    width = max(_filled(cells) for cells in lines)
    rows: list[list[str]] = []
    for k, cells in enumerate(lines):
        where = f"{path}:{line + k}"
        n_columns = min(len(cells), width)
        if n_columns < MIN_COLUMNS:
            raise UserError(f"{where}: expected at least {MIN_COLUMNS} columns, found {n_columns}")
        if rows and n_columns != len(rows[0]):
            raise UserError(f"{where}: {n_columns} columns, but {len(rows[0])} at the sentence's first token")
        if not cells[WORD]:
            raise UserError(f"{where}: an empty word (column {WORD + 1})")
        rows.append([cell or NO_VALUE for cell in cells[:n_columns]])
    sentence = Sentence(path, range(line, line + len(rows)), rows)
    sentence.check()
    return sentence


def _filled(cells: list[str]) -> int:
    """Columns up to the last that is not empty."""
    return max((k for k, cell in enumerate(cells, start=1) if cell), default=0)
