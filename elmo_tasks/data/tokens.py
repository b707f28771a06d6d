"""Raw text to tokens with their character offsets, by the rules of English."""

from __future__ import annotations

import re
from typing import NamedTuple
from unicodedata import category

_MARK, _JOINER = "\u0300", "\u200d"
_PLANES = (range(0x80, 0x20000), range(0xE0000, 0xE1000))  # all that have combining marks
_MARKS = {k: _MARK for plane in _PLANES for k in plane if category(chr(k))[0] == "M"}
_ATTACHED = _MARKS | dict.fromkeys((0xAD, 0x200C, 0x200D), _JOINER)  # soft hyphen, ZWNJ, ZWJ
"""What is part of a word: combining marks of any script (the categories Mn, Mc, Me), and joiners within it or after its
marks. The rules have one of each, which stands for all: a class of so many characters is slow."""
_ATTACHED_SET = frozenset(map(chr, _ATTACHED))
_APOSTROPHE = "['\u2019]"


def _compiled(letter: str, letters: str, word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The rules that keep hyphenated words whole, and those that split them."""
    rules = rf"""
        \.\.+ | --+                                      # an ellipsis, a typed dash
      | (?:{letter}\.){{2,}}                              # U.S., i.e.
      | (?:Mr|Mrs|Ms|Dr|St|Prof|Sr|Jr|Lt|Col|Gen|Rev|Mt|vs|No)\.(?=\s)   # a point that ends no sentence
      | \d+(?:[.,]\d+)+                                  # 3.14, 1,000,000
      | {letters}(?=n{_APOSTROPHE}t\b) | n{_APOSTROPHE}t\b   # do n't
      | {letters}(?=N{_APOSTROPHE}T\b) | N{_APOSTROPHE}T\b   # DO N'T
      | {_APOSTROPHE}(?:s|re|ve|d|ll|m|S|RE|VE|D|LL|M)\b   # it 's
      | HYPHENATED
      | \S                                               # any other character by itself
    """
    whole, split = (rules.replace("HYPHENATED", kind) for kind in (rf"{word}(?:-{word})*", word))
    return re.compile(whole, re.VERBOSE), re.compile(split, re.VERBOSE)


MARKED_WORD = rf"[^\W_]+(?:(?:{_MARK}+{_JOINER}*|{_JOINER}+(?=[^\W_]|{_MARK}))[^\W_]*)*"
"""Letters and digits of any script with what is attached to them, in a text as :func:`with_few_marks` gives it."""
_PLAIN = _compiled(r"[^\W\d_]", r"[^\W\d_]+", r"[^\W_]+")
_MARKED = _compiled(  # the same with what is attached to them
    rf"[^\W\d_]{_MARK}*",
    rf"[^\W\d_]+(?:[{_MARK}{_JOINER}]+[^\W\d_]+)*[{_MARK}{_JOINER}]*",
    MARKED_WORD,
)


class Token(NamedTuple):
    """``text[start:stop] == word`` for the text that it was found in."""

    word: str
    start: int
    stop: int


def tokenize(text: str, *, split_hyphens: bool = False) -> list[Token]:
    """Words, numbers and punctuation, clitics apart (``do n't``, ``it 's``), much as the Penn Treebank has them.

    Every character but white space is in exactly one token, so that any stretch of tokens is a literal stretch of text.
    Combining marks of every script, joiners (ZWNJ, ZWJ) and soft hyphens stay within their word.

    Args:
        text: of one sentence or of many.
        split_hyphens: ``well-known`` as three tokens, so that an answer may begin or end within.
    """
    marked = with_few_marks(text)
    rules = _PLAIN if marked is None else _MARKED
    spans = (match.span() for match in rules[split_hyphens].finditer(marked or text))
    return [Token(text[start:stop], start, stop) for start, stop in spans]


def with_few_marks(text: str) -> str | None:
    """The text with one mark and one joiner in place of all, character by character; None if it has none."""
    return None if text.isascii() or _ATTACHED_SET.isdisjoint(text) else text.translate(_ATTACHED)


def split_words(text: str) -> list[str]:
    """The words of :func:`tokenize` without their offsets."""
    return [token.word for token in tokenize(text)]
