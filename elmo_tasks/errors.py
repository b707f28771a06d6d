"""The exception for errors that a user can fix, Hydra's errors as one sentence, and closed output pipes."""

from __future__ import annotations

import os
import reprlib
import sys


class UserError(Exception):
    """Bad input: one clear sentence that names the file, line or key, what was expected and what was found.

    ``run.py`` prints the sentence without a traceback and exits with status 1.
    """


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


def hydra_sentence(error: BaseException) -> str:
    """One sentence on a command line that Hydra refuses: what is wrong, and what the choices are."""
    key = getattr(error.__cause__, "full_key", None)
    parent = getattr(error.__cause__, "parent_node", None)
    if key is not None and parent is not None:
        choices = ", ".join(str(k) for k in parent)
        return f"there is no key {key!r}; beside it there are {choices}"
    options = getattr(error, "options", None)
    missing = getattr(error, "missing_cfg_file", None)
    if options and missing:
        group, _, name = str(missing).rpartition("/")
        return f"{group}={name}: no such choice; there are {', '.join(sorted(options))}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])


def end_quietly() -> None:
    """After a BrokenPipeError: keep Python from complaining that the reader, such as ``head``, has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
