"""The pieces of words, as a Hugging Face tokeniser cuts them, and the windows in which many pieces are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass
class Pieces:
    """A sentence's pieces, and the special ones before and after them."""

    before: list[int]
    ids: list[int]
    after: list[int]
    words: dict[int, tuple[int, int]]
    """Position of a word in the sentence to its first and last place in ``ids``; not for a word without pieces."""


class PieceTokenizer:
    """Cuts words into pieces one by one, each with a space before it where the tokeniser tells word beginnings by it.

    Args:
        tokenizer: a fast tokeniser.
        pieces: what a word's vector is made of: its ``first`` piece, or the ``mean`` of its pieces.
    """

    def __init__(self, tokenizer: Any, pieces: str) -> None:
        self.tokenizer, self.pieces = tokenizer, pieces
        self._space = " " if _tells_words_by_spaces(tokenizer) else ""

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """The pieces of each sentence, whatever the tokeniser's own file says of truncation and padding."""
        if not sentences:
            return []
        spaced = [[self._space + _utf8(word) for word in sentence] for sentence in sentences]
        cut = self.tokenizer(spaced, is_split_into_words=True, truncation=False, padding=False)
        return [self._pieces(ids, cut.word_ids(row)) for row, ids in enumerate(cut["input_ids"])]

    def _pieces(self, ids: list[int], word_ids: list[int | None]) -> Pieces:
        """Take the special pieces off, and find those of each word."""
        own = [(k, word) for k, word in enumerate(word_ids) if word is not None]
        if not own:
            return Pieces([], [], [], {})
        begin, end = own[0][0], own[-1][0] + 1
        words: dict[int, tuple[int, int]] = {}
        for k, word in own:
            first, _ = words.get(word, (k - begin, 0))
            words[word] = (first, first if self.pieces == "first" else k - begin)
        return Pieces(ids[:begin], ids[begin:end], ids[end:], words)


def _utf8(word: str) -> str:
    """The word as the biLM reads it too: without the lone surrogates that JSON may bring."""
    return word if word.isascii() else word.encode("utf-8", "ignore").decode("utf-8")


def _tells_words_by_spaces(tokenizer: Any) -> bool:
    """Whether a word in running text has other pieces than by itself, and the same ones with a space before it."""
    running = tokenizer("the the", add_special_tokens=False, return_offsets_mapping=True)
    expected = [k for k, (_, end) in zip(running["input_ids"], running["offset_mapping"], strict=True) if end > 3]

    def second(word: str) -> list[int]:
        cut = tokenizer(["the", word], is_split_into_words=True, add_special_tokens=False)
        return [k for k, number in zip(cut["input_ids"], cut.word_ids(), strict=True) if number == 1]

    return second("the") != expected == second(" the")


def window_starts(n_pieces: int, size: int) -> list[int]:
    """Where windows of ``size`` pieces begin: every half window, and the last one at the end of the text.

    So every piece has, in one of them, a quarter of a window on both sides, or the text ends there. A text that fits
    is one window.
    """
    if n_pieces <= size:
        return [0]
    step = max(1, size // 2)
    return [*range(0, n_pieces - size, step), n_pieces - size]


def best_window(first: int, last: int, starts: list[int], size: int) -> int:
    """The number of the window in which pieces ``first`` to ``last`` have most context on their poorer side.

    Pieces outside of the window count as missing context, so that of a word longer than a window the middle is seen.
    """
    return max(range(len(starts)), key=lambda k: min(first - starts[k], starts[k] + size - 1 - last))
