"""The columns of predicates and arguments in CoNLL-2012 files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

from elmo_tasks.data.conll2012 import EMPTY, FIRST_ARGUMENTS, FRAMESET, LEMMA, WORD, LabelledSpan, Sentence
from elmo_tasks.data.tags import iob2
from elmo_tasks.errors import UserError, counted, quoted

_LABEL = re.compile(r"(?:[CR]-)?ARG[0-5AM](?:-[A-Z]+)*|(?:C-)?V")
"""PropBank: ARG0 to ARG5, ARGA, ARGM, also with suffixes (ARGM-TMP); C- continues an argument, R- refers back."""


class SrlGold(TypedDict):
    """What predictions are compared with: the sentence's position in the file; the rest is by predicate."""

    number: int
    predicates: list[int]
    lemmas: list[str]
    tags: list[list[str]]


def read_frames(sentence: Sentence, number: int, left_out: list[str] | None = None) -> SrlGold:
    """The predicates of a sentence and their arguments.

    Args:
        sentence: of the file.
        number: its position in the file.
        left_out: to which the labels are added that are left out because they are within another one; None refuses
            such labels.

    Raises:
        UserError: naming file and line, if predicates and columns differ in number, or if a column has no V, two of
            them, or an unknown label.
    """
    at = [k for k, frameset in enumerate(sentence.column(FRAMESET)) if frameset not in EMPTY]
    n_columns = len(sentence.rows[0]) - FIRST_ARGUMENTS - 1
    if n_columns != len(at):
        raise UserError(
            f"{sentence.where()}: {counted(len(at), 'predicate')} but {counted(n_columns, 'column')} of arguments"
        )
    lemmas = [_name(sentence.rows[k]) for k in at]
    tags = [_tags(sentence, FIRST_ARGUMENTS + n, k, left_out) for n, k in enumerate(at)]
    return SrlGold(number=number, predicates=at, lemmas=lemmas, tags=tags)


def _tags(sentence: Sentence, column: int, predicate: int, left_out: list[str] | None) -> list[str]:
    """IOB2 tags of a predicate's column, checked."""
    spans = sentence.spans(column, nested=left_out is not None)
    word = quoted(sentence.tokens[predicate])
    place = f"in column {column + 1}, which is that of the predicate {word}"
    verbs = [(start, stop) for start, stop, label in spans if label == "V"]
    if not any(start <= predicate < stop for start, stop in verbs):
        raise UserError(f"{sentence.where(predicate)}: no V {place}")
    if len(verbs) > 1:
        raise UserError(f"{sentence.where(verbs[1][0])}: a second V {place}; expected C-V for its continuation")
    for start, _, label in spans:
        if not _LABEL.fullmatch(label):
            raise UserError(
                f"{sentence.where(start)}: unknown label {quoted(label)}; expected one of PropBank's, such as ARG0, "
                "ARGM-TMP, R-ARG0 or C-V"
            )
    if left_out is not None:
        spans, inner = _flat(spans)
        left_out += inner
    return iob2(spans, len(sentence.rows))


def _flat(spans: Sequence[LabelledSpan]) -> tuple[list[LabelledSpan], list[str]]:
    """The outer ones of nested spans, and the labels of the others. A V is kept, and what is around it is not.

    Of two spans of the same tokens the outer one is the one that ends later in the list.
    """
    kept: list[LabelledSpan] = []
    for span in sorted(reversed(spans), key=lambda span: (span[2] != "V", span[0] - span[1])):
        if all(span[1] <= start or stop <= span[0] for start, stop, _ in kept):
            kept.append(span)
    left_out = Counter(label for _, _, label in spans) - Counter(label for _, _, label in kept)
    return sorted(kept), list(left_out.elements())


def _name(row: list[str]) -> str:
    """The name of a predicate in the files of the scorer: its lemma, or its word where it has none.

    In these files ``-`` marks a token that is not a predicate, and white space ends a column.
    """
    names = (name for name in (row[LEMMA], row[WORD]) if name not in EMPTY and not re.search(r"\s", name))
    return next(names, "_")
