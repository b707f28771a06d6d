"""The exception for errors that a user can fix, Hydra's errors as one sentence, and closed output pipes."""

from __future__ import annotations

import os
import reprlib
import sys
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


def hydra_sentence(error: BaseException) -> str:
    """One sentence on a command line that Hydra refuses: what is wrong, and what the choices are."""
    key = getattr(error.__cause__, "full_key", None)
    parent = getattr(error.__cause__, "parent_node", None)
    if key is not None and parent is not None:
        choices = ", ".join(str(k) for k in parent)
        return f"unknown key {key!r}; expected one of {choices}"
    options = getattr(error, "options", None)
    missing = getattr(error, "missing_cfg_file", None)
    if options and missing:
        text = str(missing)
        cut = text.find("//") if "//" in text else text.rfind("/")  # // is before an absolute path
        group, name = text[:cut], text[cut + 1 :]
        own = f"; a path of your own is {group}.path={name}" if "//" in text and group in ("bilm", "words") else ""
        return f"{group}={name}: unknown choice; expected one of {', '.join(sorted(options))}{own}"
    override = getattr(error, "override", None)
    if override is not None:
        return f"{override!r} cannot be read; expected KEY=VALUE, without a space at the = or after a comma"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].startswith("Ambiguous value for argument"):
        given = lines[0].partition("'")[2].rstrip("'")
        return f"{given}: several values make a sweep; use elmo-tasks sweep, or python run.py -m (a list is KEY=[A,B])"
    if lines[1:2] == ["Available options:"]:
        return f"{lines[0]}; there are {', '.join(lines[2:])}"
    return " ".join(lines[:2])


def end_quietly() -> None:
    """After a BrokenPipeError: keep Python from complaining that the reader, such as ``head``, has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
