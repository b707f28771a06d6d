"""The exception for errors that a user can fix, and what its sentence is made of."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Sequence
from itertools import accumulate

MAX_SENTENCE = 300
"""The most characters that the sentence of an error has; a path in it counts as twenty, however long it is."""

_MAX_WORD, _MAX_PATH, _PATH_COUNTS = 80, 1000, 20
_MAX_END = 100  # characters at the end that stay: the remedy stands there
_MAX_READ = 5000  # characters that are read of each end of a text


class UserError(Exception):
    """Bad input: one clear sentence that names the file, line or key, what was expected and what was found.

    ``run.py`` prints the sentence without a traceback and exits with status 1. The sentence is one line of printable
    characters of bounded length (see :func:`sentence`), whatever a file or a user puts into it.
    """

    def __init__(self, text: str) -> None:
        super().__init__(sentence(text))


_NO_MEMORY = (
    *("could not create a primitive", "could not create a memory", "can't allocate memory", "out of memory"),
    *("cannot allocate memory", "not enough memory", "bad_alloc"),
)
"""What PyTorch and oneDNN say, in small letters."""


def out_of_memory(error: BaseException, remedy: str) -> UserError | None:
    """The sentence for an error that says that there is no memory left; None for any other."""
    if not isinstance(error, (MemoryError, RuntimeError, OSError)):
        return None
    reason = str(error).strip()
    if isinstance(error, MemoryError) or any(text in reason.lower() for text in _NO_MEMORY):
        limit = "of the job (#SBATCH --mem) or shell (ulimit -v)"
        return UserError(
            f"no memory is left ({shortened(reason or 'MemoryError', 60)}): raise the limit {limit}; {remedy}"
        )
    return None


def sentence(text: str) -> str:
    """A text on one line, of at most :data:`MAX_SENTENCE` characters.

    A longer text loses its middle. The file at its beginning and the remedy at its end stay.
    """
    if len(text) > 2 * _MAX_READ:
        text = f"{text[:_MAX_READ]} {text[-_MAX_READ:]}"
    words = [_bounded_word(word) for word in _printable(" ".join(text.splitlines())).split(" ")]
    if sum(map(_cost, words)) <= MAX_SENTENCE:
        return " ".join(words)
    end = _n_fitting(words[::-1], _MAX_END)
    start = _n_fitting(words, MAX_SENTENCE - _MAX_END - _cost("..."))
    return " ".join([*words[:start], "...", *words[len(words) - end :]])


def _printable(text: str) -> str:
    """The text with escapes in place of control characters, which could command a terminal, and lone surrogates."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _bounded_word(word: str) -> str:
    n = _MAX_PATH if os.sep in word else _MAX_WORD
    return word if len(word) <= n else f"{word[: n // 2]}...{word[-n // 4 :]}"


def _cost(word: str) -> int:
    """Characters of a word and the blank after it."""
    return 1 + (_PATH_COUNTS if os.sep in word else len(word))


def _n_fitting(words: Sequence[str], n: int) -> int:
    """How many of the first words fit into n characters."""
    return sum(total <= n for total in accumulate(map(_cost, words)))


def quoted(value: object, n: int = 40) -> str:
    """A value as an error message shows it: at most ``n`` characters of a text, then an ellipsis."""
    if isinstance(value, str):
        return repr(value) if len(value) <= n else f"{value[:n]!r}..."
    return shortened(reprlib.repr(value), 2 * n)


def shortened(text: str, n: int) -> str:
    """At most ``n`` characters of a text, on one line, with an ellipsis where it is truncated."""
    line = " ".join(text[: 4 * n + 100].split())
    if len(line) <= n and len(text) <= 4 * n + 100:
        return line
    return f"{line[: n - 3]}..."


def counted(n: int, noun: str) -> str:
    """A number with its noun: 1 sentence, 2 sentences."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
