"""Character ids of a word, as in bilm-tf: its UTF-8 bytes between a begin-of-word and an end-of-word id.

There are at most 50, or what ``max_characters_per_token`` of a biLM's options says.

The ids are those of bilm-tf plus one, so that 0 is free for positions without a word.
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
N_CHARACTERS = 262  # 256 bytes, five special ids, and 0 for "no word"

_BEGIN_SENTENCE_ID = 256
_END_SENTENCE_ID = 257
_BEGIN_WORD_ID = 258
_END_WORD_ID = 259
_PADDING_ID = 260

PADDING = _PADDING_ID + 1
"""The id that pads a word. It has its own embedding, unlike 0."""


def composed(text: str) -> str:
    """A text in Unicode's composed form (NFC), in which each word has one spelling."""
    return text if text.isascii() else normalize("NFC", text)


@lru_cache(maxsize=500_000)
def character_ids(word: str, most: int = MAX_CHARACTERS) -> tuple[int, ...]:
    """The ids of one word, including its begin-of-word and end-of-word ids, without padding.

    ``<S>`` and ``</S>`` are the sentence boundaries. The word is :func:`composed` and truncated to ``most - 2`` bytes.
    """
    if word == BEGIN_SENTENCE:
        inner: Sequence[int] = (_BEGIN_SENTENCE_ID,)
    elif word == END_SENTENCE:
        inner = (_END_SENTENCE_ID,)
    else:
        inner = _bytes(word)[: most - 2]
    return tuple(i + 1 for i in (_BEGIN_WORD_ID, *inner, _END_WORD_ID))


def is_truncated(word: str, most: int = MAX_CHARACTERS) -> bool:
    """Whether a word has more bytes than the ``most - 2`` that the biLM reads."""
    return len(word if word.isascii() else _bytes(word)) > most - 2


def remark_on_truncated(words: Iterable[str], most: int = MAX_CHARACTERS) -> str:
    """A message about the distinct words that are truncated; empty if there are none."""
    truncated = list(dict.fromkeys(word for word in words if is_truncated(word, most)))
    return describe_truncated("words", len(truncated), truncated[0], most) if truncated else ""


def describe_truncated(what: str, n: int, example: str, most: int = MAX_CHARACTERS) -> str:
    """The message that ``n`` words or tokens are truncated."""
    return f"{what} longer than {most - 2} bytes are truncated: {n:,}, such as {example[:60]!r}"


def _bytes(word: str) -> bytes:
    return composed(word).encode("utf-8", "ignore")


def character_id_table(words: Sequence[str], extra: int = 0, most: int = MAX_CHARACTERS) -> Tensor:
    """The ids of several words, padded with :data:`PADDING` to the longest of them plus ``extra``, at most ``most``.

    Returns:
        long ``[len(words), C]``.
    """
    ids = [character_ids(word, most) for word in words]
    lengths = np.array([len(row) for row in ids], dtype=np.int64)
    width = min(most, int(lengths.max(initial=0)) + extra)
    table = np.full((len(ids), width), PADDING, dtype=np.int64)
    table[np.arange(width) < lengths[:, None]] = list(chain.from_iterable(ids))
    return torch.from_numpy(table)
