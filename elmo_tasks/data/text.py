"""Lines of a text file, and what every reader asks of a token list."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_tasks.errors import UserError

MAX_TOKEN_CHARACTERS = 200


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their end; a byte order mark and CRLF ends are taken off.

    Raises:
        UserError: naming file and line, if the file cannot be read as UTF-8.
    """
    number = 0
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}:{number + 1}: not UTF-8 ({error.reason})") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error


def check_tokens(tokens: Sequence[str], where: str) -> None:
    """Refuse what cannot be a tokenised sentence.

    Raises:
        UserError: for an empty sentence, an empty token, or a token so long that it must be something else.
    """
    if not tokens:
        raise UserError(f"{where}: an empty sentence")
    for token in tokens:
        if not token:
            raise UserError(f"{where}: an empty token in {' '.join(tokens[:8])!r}")
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise UserError(
                f"{where}: a token of {len(token)} characters ({token[:20]!r}...); "
                f"expected words of at most {MAX_TOKEN_CHARACTERS}"
            )
