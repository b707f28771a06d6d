"""Whether a column counts the tokens of its sentences and so has no words."""

from __future__ import annotations

import re
from collections.abc import Sequence

N_EVIDENCE = 10
"""How many sentences are looked at."""

EXTRA = re.compile(r"(\d+)([-.])(\d+)")
"""CoNLL-U's numbers of what is no token: a range of tokens that are written as one word, or an empty node."""


def counts(column: Sequence[str]) -> bool:
    """Whether the column of a sentence is 1, 2, ..., n or 0, 1, ..., n - 1, CoNLL-U's further lines left out.

    Those are a range that begins with the next number, and an empty node after the last one. WebAnno's numbers, which
    have that of the sentence before them (3-1, 3-2), count too.
    """
    numbers: list[int] = []
    for text in column:
        extra = EXTRA.fullmatch(text)
        if text.isdecimal():
            numbers.append(int(text))
        elif extra is None or int(extra[1]) != _expected(numbers, extra[2]):
            return _are_webannos(column)
    return numbers[:1] in ([0], [1]) and _are_consecutive(numbers)


def _expected(numbers: list[int], sign: str) -> int:
    """The number with which a range (``-``) or an empty node (``.``) begins."""
    last = numbers[-1] if numbers else 0
    return last + 1 if sign == "-" else last


def _are_webannos(column: Sequence[str]) -> bool:
    """Whether a sentence's column is S-1, S-2, ..., S-n."""
    sentence = column[0].partition("-")[0]
    return sentence.isdecimal() and list(column) == [f"{sentence}-{k}" for k in range(1, len(column) + 1)]


def _are_consecutive(numbers: Sequence[int]) -> bool:
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))


def are_numbered(sentences: Sequence[Sequence[Sequence[str]]]) -> bool:
    """Whether the first column of a file's first sentences has numbers of tokens, and not words that are numbers.

    It has if it counts the tokens of each of them, from 1 or 0 in each sentence or on through all of them, and there is
    enough to tell by. One other sentence (3, 2, 1) shows that they are words, and so does what could be either:

    * one token alone;
    * a second column that is the same throughout, as the tag of numbers is and words are not;
    * two columns, where nothing would be left for a tag, unless two sentences of several tokens count.

    Args:
        sentences: of each token the first three columns, or all if there are fewer.
    """
    columns = [[row[0] for row in rows] for rows in sentences]
    several = sum(len(column) > 1 for column in columns)
    whole = [number for column in columns for number in column]
    if len(whole) < 2 or not (all(map(counts, columns)) or (several and counts(whole))):
        return False
    if len(sentences[0][0]) < 3 and several < 2:
        return False
    return len({row[1] for rows in sentences for row in rows}) > 1
