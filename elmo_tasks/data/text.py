"""Lines of a text file, and checks of token lists."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from elmo_tasks.data.files import opened
from elmo_tasks.errors import UserError, quoted

MAX_TOKEN_CHARACTERS = 1000  # the longest web address in a treebank has 473

_MAX_LINE_BYTES = 10_000_000  # far longer than a tree, a paragraph or a token with its annotations

_ESCAPES = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}


def check_encoding(name: str) -> str:
    """The canonical name of an encoding that Python knows and that encodes ASCII as single bytes.

    Raises:
        UserError: if it is not one.
    """
    try:
        if codecs.lookup(name).name == "utf-8-sig":  # a mark is removed in any case
            return "utf-8"
        ascii_bytes = "a\tb\r\n".encode(name)
    except (LookupError, TypeError, UnicodeError, ValueError):
        ascii_bytes = b""
    if ascii_bytes != b"a\tb\r\n":
        expected = "an encoding that extends ASCII, such as utf-8, latin-1 or cp949"
        raise UserError(f"task.reader.encoding must be {expected}, found {quoted(name)}")
    return codecs.lookup(name).name


def read_lines(
    path: Path, max_bytes: int = _MAX_LINE_BYTES, encoding: str | None = None, errors: str = "strict"
) -> Iterator[tuple[int, str]]:
    """Line numbers from 1 and lines without their end; byte order marks and CRLF ends are removed.

    A byte order mark may begin any line: files with one were joined.

    Args:
        path: of the file; its ending says how it is compressed.
        max_bytes: no more of a line is ever held; a longer one is an error.
        encoding: a user's choice (see :func:`check_encoding`); None is UTF-8.
        errors: what is done with bytes that cannot be decoded, as in ``bytes.decode``.

    Raises:
        UserError: as :func:`opened`, and naming file and line, if a line is too long or cannot be decoded.
    """
    number, codec = 0, encoding or "utf-8"
    try:
        with opened(path) as file:
            for number, raw in enumerate(iter(partial(file.readline, max_bytes + 1), b""), start=1):
                if len(raw) > max_bytes:
                    raise UserError(f"{path}:{number}: more than {max_bytes:,} bytes in a line; expected lines of text")
                if number == 1:
                    check_mark(path, raw, codec)
                if codec == "utf-8":
                    raw = raw.removeprefix(codecs.BOM_UTF8)
                line = raw.decode(codec, errors).rstrip("\r\n")
                if number == 1 and "\r" in line:
                    raise UserError(f"{path}:1: a carriage return within the line; expected lines ending in LF or CRLF")
                yield number, line
    except UnicodeDecodeError as error:
        remedy = encoding_remedy(error.object, can_be_set=encoding is not None)
        raise UserError(f"{path}:{number}: not {codec.upper()} ({error.reason}); {remedy}") from error


def encoding_remedy(content: bytes, *, can_be_set: bool) -> str:
    """What to do about text that is not in the encoding that was expected; Korean text is known by its bytes.

    Args:
        content: the bytes that cannot be decoded and some around them.
        can_be_set: whether there is a key for the encoding.
    """
    name = "cp949" if _is_korean(content) else "latin-1"
    if can_be_set:
        return f"set task.reader.encoding to the file's, such as {name}"
    return f"convert it to UTF-8, such as with: iconv -f {name} -t UTF-8"


def _is_korean(content: bytes) -> bool:
    """Whether text outside ASCII is Korean in CP949 (which extends EUC-KR): nearly all of it is Hangul then."""
    letters = [c for c in content.decode("cp949", "replace") if not c.isascii()]
    hangul = [c for c in letters if "가" <= c <= "힣"]
    n_jamo = sum("ㄱ" <= c <= "ㅣ" for c in letters)  # Japanese has its kana at their place
    n_common = sum(len(c.encode("euc_kr")) == 2 for c in hangul)  # the syllables that EUC-KR itself has
    return len(hangul) > max(1, n_jamo) and 0.8 * len(letters) <= len(hangul) + n_jamo and 2 * n_common > len(hangul)


def check_mark(path: Path, start: bytes, codec: str) -> None:
    """Check the byte order mark of a file.

    Args:
        path: of the file.
        start: its first bytes, two at least.
        codec: in which it is to be read.

    Raises:
        UserError: if it is that of UTF-16, or that of UTF-8 where another encoding was set.
    """
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or start[:2].count(0) == 1:  # with and without mark
        raise UserError(f"{path}: UTF-16, which is not read; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)")
    if start.startswith(codecs.BOM_UTF8) and codec != "utf-8":
        raise UserError(f"{path}:1: begins with the mark of UTF-8, but task.reader.encoding={codec}; set it to utf-8")


def has_half_characters(text: str) -> bool:
    """Whether a text has lone surrogates, which JSON can spell and UTF-8 cannot."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def check_tokens(tokens: Sequence[str], where: str) -> None:
    """Check that a list of tokens can be a sentence.

    Raises:
        UserError: for an empty sentence, an empty token, or a token so long that it must be something else.
    """
    if not tokens:
        raise UserError(f"{where}: an empty sentence")
    for token in tokens:
        if not token:
            raise UserError(f"{where}: an empty token in {quoted(' '.join(tokens[:8]))}")
        if has_half_characters(token):
            raise UserError(f"{where}: half a character (a lone surrogate) in {quoted(token)}")
        if len(token) > MAX_TOKEN_CHARACTERS:
            raise UserError(
                f"{where}: a token of {len(token)} characters ({token[:20]!r}...); "
                f"expected words of at most {MAX_TOKEN_CHARACTERS}"
            )


def unescape_treebank(token: str) -> str:
    """Undo the Penn Treebank's escapes, so that word vectors and the biLM see the text that they were trained on."""
    return _ESCAPES.get(token, token.replace("\\/", "/").replace("\\*", "*"))
