"""SQuAD v1.1's JSON, checked and read as one question after the other, each with its context and answers."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.data.files import read_content
from elmo_tasks.data.text import has_half_characters
from elmo_tasks.errors import UserError, quoted, shortened

VERSION = "1.1"

_MAX_BYTES = 500_000_000  # the official training set has 30 million


@dataclass
class Answer:
    """A reference answer, and its stated offset in the context."""

    text: str
    start: int

    def fits(self, context: str) -> bool:
        """Whether the context has it at that offset."""
        return self.start >= 0 and context[self.start : self.start + len(self.text)] == self.text


@dataclass
class Question:
    """A question on a context with its reference answers."""

    id: str
    context: str
    question: str
    answers: list[Answer]

    @property
    def fitting(self) -> list[Answer]:
        """The answers that the context has at their offsets."""
        return [answer for answer in self.answers if answer.fits(self.context)]


def read_questions(path: Path, encoding: str = "utf-8") -> Iterator[Question]:
    """All questions of an official file, plain or compressed.

    Raises:
        UserError: naming file and place, if it is not such a file.
    """
    try:
        text = read_content(path, _MAX_BYTES).removeprefix(codecs.BOM_UTF8).decode(encoding)
        content = json.loads(text)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not {encoding.upper()} ({error.reason} at byte {error.start:,}); set task.reader.encoding"
        ) from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from error
    root = _Node(content, str(path))
    version = root.field("version", str).value
    if version != VERSION:
        raise UserError(f"{path}: expected version {VERSION!r}, found {quoted(version)}")
    for article in root.items("data"):
        for paragraph in article.items("paragraphs"):
            context = paragraph.text("context")
            for question in paragraph.items("qas"):
                yield _question(question, context)


def questions_in_rows(rows: Iterable[Mapping[str, Any]], where: str) -> Iterator[Question]:
    """All questions of the hub's rows.

    Raises:
        UserError: naming the row, if it lacks the columns of the hub.
    """
    for number, row in enumerate(rows):
        node = _Node(dict(row), f"{where} row {number}")
        answers = node.field("answers", dict)
        texts, starts = answers.items("text"), answers.items("answer_start")
        if len(texts) != len(starts):
            raise UserError(f"{answers.where}: {len(texts)} texts but {len(starts)} answer_starts")
        pairs = [{"text": t.value, "answer_start": s.value} for t, s in zip(texts, starts, strict=True)]
        yield _question(_Node({**row, "answers": pairs}, node.where), node.text("context"))


def _question(node: _Node, context: str) -> Question:
    id_ = node.text("id")
    node = _Node(node.value, f"{node.where} (question {shortened(id_, 40)})")
    answers = node.items("answers")
    if not answers:
        raise UserError(f"{node.where}: no answer; version {VERSION} has at least one for every question")
    return Question(id_, context, node.text("question"), [_answer(answer, node.where) for answer in answers])


def _answer(node: _Node, where: str) -> Answer:
    node = _Node(node.value, f"{where}: answer")
    return Answer(node.text("text"), node.field("answer_start", int).value)


@dataclass
class _Node:
    """A value somewhere in the file, and how to name its place."""

    value: Any
    where: str

    def field(self, key: str, kind: type) -> _Node:
        """A field of an object."""
        if not isinstance(self.value, dict):
            raise UserError(f"{self.where}: expected an object, found {_kind(self.value)}")
        if key not in self.value:
            found = shortened(", ".join(map(str, self.value)), 100) or "nothing"
            raise UserError(f"{self.where}: no {key!r}; found {found}")
        value = self.value[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise UserError(f"{self.where}: {key!r} must be {_NAMES[kind]}, found {_kind(value)}")
        return _Node(value, f"{self.where}: {key}")

    def items(self, key: str) -> list[_Node]:
        """The members of a list."""
        node = self.field(key, list)
        return [_Node(value, f"{node.where}[{k}]") for k, value in enumerate(node.value)]

    def text(self, key: str) -> str:
        """A text that is not empty and can be written as UTF-8."""
        node = self.field(key, str)
        if not node.value.strip():
            raise UserError(f"{self.where}: {key!r} is empty")
        if has_half_characters(node.value):
            raise UserError(f"{self.where}: half a character (a lone surrogate) in {key!r}")
        value: str = node.value
        return value


_NAMES = {str: "a text", int: "a whole number", list: "a list", dict: "an object"}


def _kind(value: Any) -> str:
    return next((name for kind, name in _NAMES.items() if type(value) is kind), quoted(value))
