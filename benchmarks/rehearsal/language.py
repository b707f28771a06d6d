"""A synthetic language whose words have the lengths and frequencies of English ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SYLLABLES = [c + v for c in "tnsrhldcmpfgwbk" for v in "eaoiu"]
_ENDINGS = ["", "n", "st", "rs", "ng"]  # of consonants alone, so that no two ranks share a spelling
_FREQUENT = ("the", "of", "and", "to", "in", "a", "is", "that", "for", "was", "on", "with", "as", "by", "at", "from")
_SHIFT, _EXPONENT = 2.7, 1.1


def make_word(rank: int) -> str:
    """The word of a frequency rank (from 0), in lower-case letters; no two ranks share one."""
    if rank < len(_FREQUENT):
        return _FREQUENT[rank]
    n, word = rank + len(_SYLLABLES), ""  # no word of one syllable, which could be one of the frequent ones
    ending = _ENDINGS[rank % len(_ENDINGS)]
    while n:
        n, digit = divmod(n, len(_SYLLABLES))
        word += _SYLLABLES[digit]
    return word + ending


class Language:
    """Draws words by Zipf's law in Mandelbrot's form: a word of rank r has probability ~ 1 / (r + 2.7) ** 1.1.

    Args:
        n_words: distinct words that there are.
        rng: random numbers; the same state gives the same text.
    """

    def __init__(self, n_words: int, rng: np.random.Generator) -> None:
        self.rng = rng
        self._words = np.array([make_word(rank) for rank in range(n_words)], dtype=object)
        frequencies = (np.arange(1, n_words + 1) + _SHIFT) ** -_EXPONENT
        self._cumulative = frequencies.cumsum() / frequencies.sum()

    def words(self, n: int) -> list[str]:
        """``n`` words, drawn independently."""
        ranks = np.searchsorted(self._cumulative, self.rng.random(n))
        drawn: list[str] = self._words[np.minimum(ranks, len(self._words) - 1)].tolist()
        return drawn

    def sentence(self, n_tokens: int) -> list[str]:
        """A sentence of ``n_tokens`` tokens, of which the last is its full stop."""
        return [*self.words(n_tokens - 1), "."] if n_tokens > 1 else self.words(1)


def raw(tokens: list[str]) -> str:
    """A sentence as raw text, which the project's tokeniser splits into the same tokens."""
    return " ".join(tokens[:-1]) + "." if tokens[-1] == "." and len(tokens) > 1 else " ".join(tokens)


def lengths(rng: np.random.Generator, n: int, mean: float, std: float, shortest: int, longest: int) -> NDArray[np.int_]:
    """n log-normal lengths of a given mean and standard deviation, rounded and cut to bounds."""
    variance = np.log(1 + (std / mean) ** 2)
    drawn = rng.lognormal(np.log(mean) - variance / 2, variance**0.5, n)
    return np.clip(np.rint(drawn), shortest, longest).astype(int)
