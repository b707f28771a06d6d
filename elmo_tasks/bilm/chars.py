"""Character ids of a word, as in bilm-tf: the UTF-8 bytes between a begin and an end mark, 50 ids a word.

Ids on the way into the network are bilm-tf's plus one, so that 0 is free for positions that hold no word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from unicodedata import normalize

import numpy as np
import torch
from torch import Tensor

BEGIN_SENTENCE = "<S>"
END_SENTENCE = "</S>"

MAX_CHARACTERS = 50
N_CHARACTERS = 262  # 256 bytes, five marks, and 0 for "no word here"

_BEGIN_SENTENCE_ID = 256
_END_SENTENCE_ID = 257
_BEGIN_WORD_ID = 258
_END_WORD_ID = 259
_PADDING_ID = 260

PADDING = _PADDING_ID + 1
"""The id that fills a word up to 50 characters. It has an embedding of its own, unlike 0."""


def composed(text: str) -> str:
    """A text with letters and their marks composed (NFC), so that each word in it has one spelling."""
    return text if text.isascii() else normalize("NFC", text)


@lru_cache(maxsize=500_000)
def character_ids(word: str) -> tuple[int, ...]:
    """The ids of one word, both word marks included, without the filling up to 50.

    ``<S>`` and ``</S>`` stand for the sentence marks. The word is :func:`composed`; of a longer one the first 48 bytes
    count.
    """
    if word == BEGIN_SENTENCE:
        inner: Sequence[int] = (_BEGIN_SENTENCE_ID,)
    elif word == END_SENTENCE:
        inner = (_END_SENTENCE_ID,)
    else:
        inner = _bytes(word)[: MAX_CHARACTERS - 2]
    return tuple(i + 1 for i in (_BEGIN_WORD_ID, *inner, _END_WORD_ID))


def is_cut(word: str) -> bool:
    """Whether a word loses its end."""
    return len(word if word.isascii() else _bytes(word)) > MAX_CHARACTERS - 2


def remark_on_cut(words: Iterable[str]) -> str:
    """What the user should know of the words that lose their end, if there are any; each counts once."""
    cut = list(dict.fromkeys(filter(is_cut, words)))
    return say_cut("words", len(cut), cut[0]) if cut else ""


def say_cut(what: str, n: int, example: str) -> str:
    """That so many words or tokens lose their end."""
    return f"{what} longer than {MAX_CHARACTERS - 2} bytes, which lose their end: {n:,}, such as {example[:60]!r}"


def _bytes(word: str) -> bytes:
    return composed(word).encode("utf-8", "ignore")


def character_id_table(words: Sequence[str], extra: int = 0) -> Tensor:
    """The ids of several words, filled with :data:`PADDING` to the longest of them plus ``extra``, at most 50.

    Returns:
        long ``[len(words), C]``.
    """
    ids = [character_ids(word) for word in words]
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    width = min(MAX_CHARACTERS, int(lengths.max(initial=0)) + extra)
    table = np.full((len(ids), width), PADDING, dtype=np.int64)
    table[np.arange(width) < lengths[:, None]] = list(chain.from_iterable(ids))
    return torch.from_numpy(table)
