"""The JSON of SQuAD, checked and read as one question after the other, each with its context and answers."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.data.files import read_content
from elmo_tasks.data.text import check_mark, encoding_remedy, has_half_characters
from elmo_tasks.errors import UserError, quoted, shortened

_MAX_BYTES = 500_000_000  # the official training set has 30 million
_AROUND = 2000  # bytes on both sides of one that cannot be decoded, which show the encoding


@dataclass
class Answer:
    """A reference answer, and its stated offset in the context, if that was read."""

    text: str
    start: int | None

    def fits(self, context: str) -> bool:
        """Whether the context has it at that offset."""
        return self.start is not None and self.start >= 0 and context.startswith(self.text, self.start)


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


def read_questions(path: Path, encoding: str = "utf-8", *, with_offsets: bool = True) -> Iterator[Question]:
    """All questions of a file in the format of version 1.1, whatever it calls itself, plain or compressed.

    Args:
        path: of the file.
        encoding: of its text.
        with_offsets: read where in the context the answers are; scoring compares their texts alone.

    Raises:
        UserError: naming file and place, if it is not such a file, or if a question has no answer, as in version 2.0.
    """
    raw = read_content(path, _MAX_BYTES)
    check_mark(path, raw[: len(codecs.BOM_UTF8)], encoding)
    try:
        content = json.loads(raw.removeprefix(codecs.BOM_UTF8).decode(encoding))
    except UnicodeDecodeError as error:
        around = raw[max(0, error.start - _AROUND) : error.start + _AROUND]
        remedy = encoding_remedy(around, can_be_set=True)
        reason = f"{error.reason} at byte {error.start:,}"
        raise UserError(f"{path}: not {encoding.upper()} ({reason}); {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from error
    for article in _Node(content, str(path)).items("data"):
        for paragraph in article.items("paragraphs"):
            context = paragraph.text("context")
            for question in paragraph.items("qas"):
                yield _question(question, context, with_offsets)


def questions_in_rows(
    rows: Iterable[Mapping[str, Any]], where: str, *, with_offsets: bool = True
) -> Iterator[Question]:
    """All questions of the hub's rows, as :func:`read_questions` gives those of a file.

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
        yield _question(_Node({**row, "answers": pairs}, node.where), node.text("context"), with_offsets)


def _question(node: _Node, context: str, with_offsets: bool) -> Question:
    id_ = node.text("id")
    node = _Node(node.value, f"{node.where} (question {shortened(id_, 40)})")
    answers = node.items("answers")
    if not answers or node.value.get("is_impossible") is True:
        raise UserError(
            f"{node.where}: no answer; SQuAD 2.0's unanswerable questions (is_impossible) are not supported: "
            "leave them out of the file"
        )
    return Question(
        id_, context, node.text("question"), [_answer(answer, node.where, with_offsets) for answer in answers]
    )


def _answer(node: _Node, where: str, with_offset: bool) -> Answer:
    node = _Node(node.value, f"{where}: answer")
    return Answer(node.text("text"), node.field("answer_start", int).value if with_offset else None)


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
