"""Raw English text to tokens with their character offsets."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = r"[^\W_](?:[^\W_]|[\u0300-\u036f])*"  # letters and digits of any script, with combining marks
_APOSTROPHE = "['\u2019]"
_CLITIC = rf"{_APOSTROPHE}(?:s|re|ve|d|ll|m|S|RE|VE|D|LL|M)\b"
_PATTERN = rf"""
    \.\.+ | --+                                      # an ellipsis, a typed dash
  | (?:[^\W\d_]\.){{2,}}                             # U.S., i.e.
  | (?:Mr|Mrs|Ms|Dr|St|Prof|Sr|Jr|Lt|Col|Gen|Rev|Mt|vs|No)\.(?=\s)   # a point that ends no sentence
  | \d+(?:[.,]\d+)+                                  # 3.14, 1,000,000
  | [^\W\d_]+(?=n{_APOSTROPHE}t\b) | n{_APOSTROPHE}t\b   # do n't
  | [^\W\d_]+(?=N{_APOSTROPHE}T\b) | N{_APOSTROPHE}T\b   # DO N'T
  | {_CLITIC}                                        # it 's
  | HYPHENATED
  | \S                                               # any other character by itself
"""
_WHOLE = re.compile(_PATTERN.replace("HYPHENATED", rf"{_WORD}(?:-{_WORD})*"), re.VERBOSE)
_SPLIT = re.compile(_PATTERN.replace("HYPHENATED", _WORD), re.VERBOSE)


class Token(NamedTuple):
    """``text[start:stop] == word`` for the text that it was found in."""

    word: str
    start: int
    stop: int


def tokenize(text: str, *, split_hyphens: bool = False) -> list[Token]:
    """Words, numbers and punctuation, clitics apart (``do n't``, ``it 's``), much as the Penn Treebank has them.

    Every character but white space is in exactly one token, so that any stretch of tokens is a literal stretch of text.

    Args:
        text: of one sentence or of many.
        split_hyphens: ``well-known`` as three tokens, so that an answer may begin or end within.
    """
    pattern = _SPLIT if split_hyphens else _WHOLE
    return [Token(match[0], match.start(), match.end()) for match in pattern.finditer(text)]


def split_words(text: str) -> list[str]:
    """The words of :func:`tokenize` without their offsets."""
    return [token.word for token in tokenize(text)]
