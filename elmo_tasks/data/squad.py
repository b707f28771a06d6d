"""Question answering: SQuAD v1.1 in its official JSON, or the hub's copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text
from elmo_tasks.data.squad_json import Question, questions_of_file, questions_of_rows
from elmo_tasks.data.text import check_tokens
from elmo_tasks.data.tokens import Token, tokenize
from elmo_tasks.errors import UserError


class Gold(TypedDict):
    """What a prediction is compared with; ``number`` is the question's place in the file."""

    id: str
    number: int
    answers: list[str]


@dataclass
class Paragraph:
    """A context and the tokens that the model reads of it."""

    context: str
    tokens: list[Token]
    words: list[str]

    def text(self, first: int, last: int) -> str:
        """The stretch of context from one token to another."""
        return self.context[self.tokens[first].start : self.tokens[last].stop]


@dataclass
class SquadItem:
    """A question on a paragraph; ``span`` is its first answer's first and last token, None if they are cut off."""

    question: list[str]
    paragraph: Paragraph
    span: tuple[int, int] | None
    gold: Gold


@dataclass
class SquadBatch(OnDevice):
    """Attributes:
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
    gold: list[Gold]


class SquadReader:
    """Reads questions with their paragraphs, keeping character offsets: an answer is a literal stretch of its context.

    The answer to train on is the first reference; it is spanned by the tokens that it touches. ``left_out`` counts

    * ``answers within a token``: training answers that the tokens around them stand for (two in a thousand);
    * ``paragraphs truncated``, and ``answers beyond max_tokens``: training questions dropped with their answer;
    * ``questions with answers that do not match``: see ``bad_answers``.

    Args:
        max_tokens: tokens of a paragraph at most.
        too_long: what to do with a longer one: ``error``, or ``truncate`` it to its first ``max_tokens``. Every dev
            and test question is still asked of what is left.
        bad_answers: what to do where the text at an answer's offset is another one: ``error``, or ``drop`` the
            answer (and the question, if no answer is left).
    """

    def __init__(self, *, max_tokens: int, too_long: str = "error", bad_answers: str = "error") -> None:
        for name, value, choices in (
            ("too_long", too_long, ("error", "truncate")),
            ("bad_answers", bad_answers, ("error", "drop")),
        ):
            if value not in choices:
                raise UserError(f"task.reader.{name} must be one of {', '.join(choices)}, found {value!r}")
        if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 1:
            raise UserError(f"task.reader.max_tokens must be a whole number of at least 1, found {max_tokens!r}")
        self.max_tokens, self.too_long, self.bad_answers = max_tokens, too_long, bad_answers
        self.left_out: dict[str, int] = {}

    def read_file(self, path: Path, split: str) -> list[SquadItem]:
        """All questions of a file, in its order."""
        return self._items(questions_of_file(path), str(path), split)

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[SquadItem]:
        """Hub rows with ``id``, ``context``, ``question`` and ``answers`` (lists ``text`` and ``answer_start``)."""
        return self._items(questions_of_rows(rows, where), where, split)

    def _items(self, questions: Iterator[Question], where: str, split: str) -> list[SquadItem]:
        items: list[SquadItem] = []
        seen: set[str] = set()
        mismatched: list[str] = []
        paragraphs: dict[str, Paragraph] = {}
        for number, question in enumerate(questions):
            if question.id in seen:
                raise UserError(f"{where}: the id {question.id!r} comes twice")
            seen.add(question.id)
            good = [answer for answer in question.answers if answer.fits(question.context)]
            if len(good) < len(question.answers):
                mismatched.append(question.id)
            if not good:
                continue
            if question.context not in paragraphs:
                paragraphs = {question.context: self._paragraph(question, where)}  # questions come by paragraph
            paragraph = paragraphs[question.context]
            words = [token.word for token in tokenize(question.question)]
            check_tokens(words, f"{where}: question {question.id}")
            gold = Gold(id=question.id, number=number, answers=[answer.text for answer in good])
            span = _span(paragraph, good[0].start, good[0].text)
            if split == "train":
                self._count_span(paragraph, span, good[0].text)
            if span is not None or split != "train":
                items.append(SquadItem(words, paragraph, span, gold))
        self._mismatched(mismatched, where)
        return items

    def _paragraph(self, question: Question, where: str) -> Paragraph:
        tokens = tokenize(question.context, split_hyphens=True)
        if len(tokens) > self.max_tokens:
            if self.too_long == "error":
                raise UserError(
                    f"{where}: the paragraph of question {question.id} has {len(tokens):,} tokens; set "
                    f"task.reader.too_long=truncate to read the first {self.max_tokens:,}, or raise "
                    f"task.reader.max_tokens (the memory of attention grows with its square)"
                )
            self._count("paragraphs truncated")
            tokens = tokens[: self.max_tokens]
        words = [token.word for token in tokens]
        check_tokens(words, f"{where}: the paragraph of question {question.id}")
        return Paragraph(question.context, tokens, words)

    def _count_span(self, paragraph: Paragraph, span: tuple[int, int] | None, answer: str) -> None:
        if span is None:
            self._count("answers beyond max_tokens")
        elif paragraph.text(*span) != answer.strip():
            self._count("answers within a token")

    def _mismatched(self, ids: list[str], where: str) -> None:
        if not ids:
            return
        if self.bad_answers == "error":
            shown = ", ".join(ids[:10]) + (", ..." if len(ids) > 10 else "")
            raise UserError(
                f"{where}: {len(ids)} questions have an answer whose text is not at its answer_start: {shown}; "
                f"task.reader.bad_answers=drop leaves such answers out"
            )
        self._count("questions with answers that do not match", len(ids))

    def _count(self, reason: str, n: int = 1) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + n

    def texts(self, item: SquadItem) -> list[list[str]]:
        return [item.question, item.paragraph.words]

    def model_parts(self, train: list[SquadItem]) -> dict[str, Any]:
        """Nothing: the model points into the context."""
        return {}

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


def _span(paragraph: Paragraph, start: int, answer: str) -> tuple[int, int] | None:
    """First and last token that an answer touches; None if its end was cut off with the paragraph's."""
    stop = start + len(answer.rstrip())
    if stop > paragraph.tokens[-1].stop:
        return None
    touched = [k for k, token in enumerate(paragraph.tokens) if token.start < stop and token.stop > start]
    return touched[0], touched[-1]
