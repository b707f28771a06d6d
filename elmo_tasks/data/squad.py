"""Question answering: the JSON of SQuAD v1.1 and of the sets that follow it, or the hub's copy."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text
from elmo_tasks.data.fields import text_field
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.squad_json import Answer, Question, questions_in_rows, read_questions
from elmo_tasks.data.text import check_tokens
from elmo_tasks.data.tokens import Token, tokenize
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.values import Size


class SquadGold(TypedDict):
    """What a prediction is compared with; ``number`` is the position of the question in the file."""

    id: str
    number: int
    answers: list[str]


@dataclass
class Paragraph:
    """A context and the tokens that the model reads of it, all of them or a stretch."""

    context: str
    tokens: list[Token]
    words: list[str]

    def text(self, first: int, last: int) -> str:
        """The stretch of context from one token to another."""
        return self.context[self.tokens[first].start : self.tokens[last].stop]

    def window(self, first: int, n_tokens: int) -> Paragraph:
        """A stretch of the tokens."""
        part = slice(first, first + n_tokens)
        return Paragraph(self.context, self.tokens[part], self.words[part])


@dataclass
class SquadItem:
    """A question on a paragraph; ``span`` is the first and last token of its first answer, None if they are cut off."""

    question: list[str]
    paragraph: Paragraph
    span: tuple[int, int] | None
    gold: SquadGold


@dataclass
class SquadBatch(OnDevice):
    """B questions, each with its paragraph.

    Attributes:
        question, context: the texts.
        starts, ends: long ``[B]``, first and last token of the answer to train on (0 where there is none).
        paragraphs: where the text of a predicted span comes from.
        gold: ids and reference answers.
    """

    question: Text
    context: Text
    starts: Tensor
    ends: Tensor
    paragraphs: list[Paragraph]
    gold: list[SquadGold]


class SquadReader(Reader[SquadItem]):
    """Reads questions with their paragraphs, keeping character offsets: an answer is a literal stretch of its context.

    The answer to train on is the first reference; its span is that of all tokens that it touches. ``left_out`` counts

    * ``answers within a token``: training answers that begin or end within a token (two in a thousand);
    * ``paragraphs truncated``, and ``answers beyond max_tokens``: training questions dropped with their answer;
    * ``questions with answers that do not match``: see ``bad_answers``.

    Args:
        max_tokens: tokens of a paragraph at most.
        too_long: what to do with a longer one: ``error``, or ``truncate`` it to its first ``max_tokens``. Every dev
            and test question is still asked of what is left. A finished run has ``windows`` in place of ``error``: it
            reads all of the paragraph, ``max_tokens`` at a time (see :meth:`parts`).
        bad_answers: what to do if the text at the offset of a training question's answer is not the answer:
            ``error``, or ``drop`` the answer (and the question, if no answer is left). Of dev and test questions no
            offset is read, since the scorer compares texts; a finished run has ``ignore`` in place of ``error``: it
            reads none at all.
        encoding: of the files.
    """

    changeable: ClassVar[Mapping[str, Any]] = {
        **Reader.changeable,
        "max_tokens": Size,
        "too_long": Literal["windows", "truncate", "error"],
        "bad_answers": Literal["ignore", "drop", "error"],
    }

    takes_tokens = False  # an answer is a literal part of the text
    fields: ClassVar[Mapping[str, str]] = {"context": "a paragraph", "question": "a question on it"}

    def __init__(
        self,
        *,
        max_tokens: Size,
        too_long: Literal["error", "truncate"] = "error",
        bad_answers: Literal["error", "drop"] = "error",
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(encoding=encoding)
        self.max_tokens = max_tokens
        self.too_long: str = too_long
        self.bad_answers: str = bad_answers

    @classmethod
    def after_training(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What was an error in training is none in use."""
        in_use = {"too_long": "windows", "bad_answers": "ignore"}
        return {**settings, **{key: value for key, value in in_use.items() if settings.get(key, "error") == "error"}}

    def read_file(self, path: Path, split: str) -> list[SquadItem]:
        """All questions of a file, in its order."""
        questions = read_questions(path, self.encoding, with_offsets=self._learns(split))
        return self._items(questions, str(path), split)

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[SquadItem]:
        """Hub rows with ``id``, ``context``, ``question`` and ``answers`` (lists ``text`` and ``answer_start``)."""
        return self._items(questions_in_rows(rows, where, with_offsets=self._learns(split)), where, split)

    def _learns(self, split: str) -> bool:
        """Whether the offsets of answers are read: a model learns them, and the scorer compares texts."""
        return split == "train" and self.bad_answers != "ignore"

    def _items(self, questions: Iterator[Question], where: str, split: str) -> list[SquadItem]:
        items: list[SquadItem] = []
        numbered = list(enumerate(_check_ids(questions, where)))
        learns = self._learns(split)
        if learns:
            self._check_answers([question for _, question in numbered], where)
            numbered = [(number, question) for number, question in numbered if question.fitting]
        for context, on_it in groupby(numbered, lambda pair: pair[1].context):  # those of a paragraph come together
            asked = list(on_it)
            place = f"{where}: the paragraph of question {shortened(asked[0][1].id, 40)}"
            paragraph = self._paragraph(context, place)
            for number, question in asked:
                item = self._item(question, number, paragraph, where, learns)
                if learns:
                    self._count_span(item)
                if not learns or item.span is not None:
                    items.append(self._at(place, item))
        return items

    def _paragraph(self, context: str, where: str) -> Paragraph:
        tokens = tokenize(context, split_hyphens=True)
        if len(tokens) > self.max_tokens and self.too_long != "windows":
            if self.too_long == "error":
                raise UserError(
                    f"{where} has {len(tokens):,} tokens; set "
                    f"task.reader.too_long=truncate to read the first {self.max_tokens:,}, or raise "
                    f"task.reader.max_tokens (the memory of attention grows with its square)"
                )
            self._count("paragraphs truncated")
            tokens = tokens[: self.max_tokens]
        words = [token.word for token in tokens]
        check_tokens(words, where)
        return Paragraph(context, tokens, words)

    def _item(self, question: Question, number: int, paragraph: Paragraph, where: str, learns: bool) -> SquadItem:
        words = self.tokenize(question.question)
        check_tokens(words, f"{where}: question {shortened(question.id, 40)}")
        answers = question.fitting if learns else question.answers
        span = _span(paragraph, question.fitting[0]) if question.fitting else None
        gold = SquadGold(id=question.id, number=number, answers=[answer.text for answer in answers])
        return SquadItem(words, paragraph, span, gold)

    def parts(self, item: SquadItem) -> list[SquadItem]:
        """The question with each window of a paragraph that is too long; windows overlap by half."""
        surplus = len(item.paragraph.tokens) - self.max_tokens
        if self.too_long != "windows" or surplus <= 0:
            return [item]
        starts = [*range(0, surplus, max(1, self.max_tokens // 2)), surplus]
        return [replace(item, paragraph=item.paragraph.window(start, self.max_tokens), span=None) for start in starts]

    def _count_span(self, item: SquadItem) -> None:
        if item.span is None:
            self._count("answers beyond max_tokens")
        elif item.paragraph.text(*item.span) != item.gold["answers"][0].strip():
            self._count("answers within a token")

    def _check_answers(self, questions: list[Question], where: str) -> None:
        ids = [question.id for question in questions if len(question.fitting) < len(question.answers)]
        if not ids:
            return
        if self.bad_answers == "error":
            shown = shortened(", ".join(ids[:10]), 100) + (", ..." if len(ids) > 10 else "")
            raise UserError(
                f"{where}: {len(ids)} questions have an answer whose text is not at its answer_start: {shown}; "
                f"task.reader.bad_answers=drop leaves such answers out"
            )
        self._count("questions with answers that do not match", len(ids))

    def texts(self, item: SquadItem) -> list[list[str]]:
        return [item.question, item.paragraph.words]

    def group(self, item: SquadItem) -> Hashable:
        """The paragraph, on which there are several questions."""
        return item.paragraph.context

    def collate(self, items: list[SquadItem], texts: list[Text]) -> SquadBatch:
        """Answers of some questions."""
        spans = torch.tensor([item.span or (0, 0) for item in items])
        return SquadBatch(
            question=texts[0],
            context=texts[1],
            starts=spans[:, 0],
            ends=spans[:, 1],
            paragraphs=[item.paragraph for item in items],
            gold=[item.gold for item in items],
        )

    def from_json(self, fields: Mapping[str, Any], where: str) -> SquadItem:
        self._check_fields(fields, where)
        context, question = (text_field(fields, name, where) for name in self.fields)
        words = self.tokenize(question)
        check_tokens(words, f"{where}: question")
        return SquadItem(
            words, self._paragraph(context, f"{where}: context"), None, SquadGold(id="", number=0, answers=[])
        )

    def to_json(self, item: SquadItem, prediction: str) -> dict[str, Any]:
        """The answer, a literal stretch of the context."""
        return {"answer": prediction}


def _check_ids(questions: Iterable[Question], where: str) -> Iterator[Question]:
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise UserError(f"{where}: the id {quoted(question.id)} comes twice")
        seen.add(question.id)
        yield question


def _span(paragraph: Paragraph, answer: Answer) -> tuple[int, int] | None:
    """First and last token that an answer touches; None if its end was cut off with the paragraph's."""
    assert answer.start is not None
    start, stop = answer.start, answer.start + len(answer.text.rstrip())
    if stop > paragraph.tokens[-1].stop:
        return None
    touched = [k for k, token in enumerate(paragraph.tokens) if token.start < stop and token.stop > start]
    return touched[0], touched[-1]
