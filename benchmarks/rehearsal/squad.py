"""SQuAD v1.1's size and layout: 18,896 training paragraphs with 87,599 questions, 2,067 and 10,570 for dev."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .files import write_lines
from .language import Language, lengths, raw

N_PARAGRAPHS = {"train": 18_896, "dev": 2_067}
N_QUESTIONS = {"train": 87_599, "dev": 10_570}
N_WORDS = 120_000
_REFERENCES = {"train": 1, "dev": 3}
_PARAGRAPHS_PER_ARTICLE = 43


def write_squad(root: Path, share: float, seed: int) -> dict[str, int]:
    """Write ``squad/{train,dev}-v1.1.json`` below ``root``; the questions of each split are returned."""
    counts = {}
    for k, split in enumerate(N_PARAGRAPHS):
        language = Language(N_WORDS, np.random.default_rng([seed, 2, k]))
        n_paragraphs = max(1, round(N_PARAGRAPHS[split] * share))
        counts[split] = max(n_paragraphs, round(N_QUESTIONS[split] * share))
        lines = _articles(language, n_paragraphs, counts[split], _REFERENCES[split], split)
        write_lines(root / "squad" / f"{split}-v1.1.json", lines)
    return counts


def _articles(language: Language, n_paragraphs: int, n_questions: int, n_references: int, split: str) -> Iterator[str]:
    """The file, some paragraphs a line."""
    yield '{"version": "1.1", "data": ['
    asked = 0
    for first in range(0, n_paragraphs, _PARAGRAPHS_PER_ARTICLE):
        paragraphs = []
        for number in range(first, min(first + _PARAGRAPHS_PER_ARTICLE, n_paragraphs)):
            until = (number + 1) * n_questions // n_paragraphs
            ids = [f"{split}{k:08d}" for k in range(asked, until)]
            paragraphs.append(_paragraph(language, ids, n_references))
            asked = until
        end = "," if first + _PARAGRAPHS_PER_ARTICLE < n_paragraphs else ""
        yield json.dumps({"title": f"Article_{first}", "paragraphs": paragraphs}) + end
    yield "]}"


def _paragraph(language: Language, ids: list[str], n_references: int) -> dict[str, Any]:
    sentences = []
    left = int(lengths(language.rng, 1, 137.0, 57.0, 22, 800)[0])
    while left > 0:
        n_tokens = min(left, int(lengths(language.rng, 1, 26.0, 11.0, 4, 120)[0]))
        sentences.append(raw(language.sentence(n_tokens)))
        left -= n_tokens
    context = " ".join(sentences)
    starts = [0, *(k + 1 for k, character in enumerate(context) if character == " ")]
    return {"context": context, "qas": [_question(language, name, context, starts, n_references) for name in ids]}


def _question(language: Language, name: str, context: str, starts: list[int], n_references: int) -> dict[str, Any]:
    question = raw(language.sentence(int(lengths(language.rng, 1, 11.4, 3.7, 3, 60)[0])))
    answers = [_answer(language.rng, context, starts) for _ in range(n_references)]
    return {"id": name, "question": question.rstrip(".") + "?", "answers": answers}


def _answer(rng: np.random.Generator, context: str, starts: list[int]) -> dict[str, Any]:
    """Some words of the context, three on average."""
    n_words = min(int(rng.geometric(0.32)), 40, len(starts))
    first = int(rng.integers(len(starts) - n_words + 1))
    words = context[starts[first] :].split(" ", n_words)[:n_words]
    return {"text": " ".join(words).rstrip("."), "answer_start": starts[first]}
