"""Items from lines of text or of JSON, each with its name for error messages."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data.text import encoding_remedy, has_half_characters, read_lines
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.predict.predictor import OnError, Predictor

Line = tuple[str, str]
"""The name of a line (``FILE:12``) and its text."""


_UTF_16 = ("\udcff\udcfe", "\udcfe\udcff")  # its mark, as bytes that are not UTF-8 are read


class Input(NamedTuple):
    """The fields of an item, and its place (``FILE:12``)."""

    name: str
    fields: dict[str, Any]


def numbered_lines(source: str, encoding: str = "utf-8") -> Iterator[Line]:
    """The name and the text of each line of a file, or of standard input (``-``).

    Bytes that are not in the encoding become lone surrogates, which :func:`read_json` and :func:`read_text` refuse.

    Raises:
        UserError: if the file cannot be read.
    """
    if source == "-":
        if isinstance(sys.stdin, io.TextIOWrapper):  # as a file is read, whatever the locale
            sys.stdin.reconfigure(encoding=encoding, errors="surrogateescape", newline="\n")
        for number, line in enumerate(sys.stdin, start=1):
            text = line.removeprefix("\ufeff") if number == 1 else line  # a byte order mark, as files may have
            yield f"standard input:{number}", text.rstrip("\r\n")
        return
    for number, line in read_lines(Path(source), encoding=encoding, errors="surrogateescape"):
        yield f"{source}:{number}", line


def read_json(lines: Iterable[Line], on_error: OnError | None, encoding: str = "utf-8") -> Iterator[Input]:
    """One JSON object a line; empty lines are skipped.

    Args:
        lines: see :func:`numbered_lines`.
        on_error: is given the error of a line that is no item; without it such a line raises.
        encoding: in which the lines were read.
    """
    return _read(_single(lines), _object, on_error, encoding)


def read_text(
    lines: Iterable[Line],
    predictor: Predictor,
    on_error: OnError | None,
    *,
    tokenized: bool,
    encoding: str = "utf-8",
) -> Iterator[Input]:
    """The natural input of a task.

    A line is an item, with a tab between its fields if it has several; empty lines are skipped. Where an item is a
    document, a line is a sentence, and an empty line ends the document.

    Args:
        lines: see :func:`numbered_lines`.
        predictor: of the task.
        on_error: is given the error of an item that cannot be read; without it such an item raises.
        tokenized: tokens are what stands between spaces.
        encoding: in which the lines were read.
    """
    fields = predictor.required_fields

    def document(sentences: list[str], name: str) -> dict[str, Any]:
        return {fields[0]: [_sentence(text, tokenized) for text in sentences]}

    def item(line: list[str], name: str) -> dict[str, Any]:
        parts = line[0].split("\t") if len(fields) > 1 else line
        if len(parts) != len(fields):
            raise UserError(f"{name}: expected {' and '.join(fields)} with a tab between, found {quoted(line[0])}")
        return {key: _sentence(part, tokenized) for key, part in zip(fields, parts, strict=True)}

    if predictor.reader.documents:
        return _read(_paragraphs(lines), document, on_error, encoding)
    return _read(_single(lines), item, on_error, encoding)


def _read(
    groups: Iterable[list[Line]],
    parse: Callable[[list[str], str], dict[str, Any]],
    on_error: OnError | None,
    encoding: str = "utf-8",
) -> Iterator[Input]:
    """An item from each group of lines, with the name of its first line."""
    for group in groups:
        name = group[0][0]
        try:
            for where, text in group:
                if has_half_characters(text):
                    raise UserError(f"{where}: {_not_decoded(text, encoding)}")
            found = Input(name, parse([text for _, text in group], name))
        except UserError as error:
            if on_error is None:
                raise
            on_error(0, error)
        else:
            yield found


def _not_decoded(line: str, encoding: str) -> str:
    """What is said of a line with bytes that are not in the encoding."""
    if line.startswith(_UTF_16):
        return "UTF-16, which is not read; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
    remedy = encoding_remedy(line.encode("utf-8", "surrogateescape"), can_be_set=True)
    return f"not {encoding.upper()}; {remedy}"


def _single(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Each line that is not empty."""
    return ([line] for line in lines if line[1].strip())


def _paragraphs(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines between empty ones."""
    found: list[Line] = []
    for line in lines:
        if line[1].strip():
            found.append(line)
        elif found:
            yield found
            found = []
    if found:
        yield found


def _sentence(text: str, tokenized: bool) -> str | list[str]:
    return [token for token in text.replace("\t", " ").split(" ") if token] if tokenized else text


def _object(line: list[str], name: str) -> dict[str, Any]:
    try:
        fields = json.loads(line[0])
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: not JSON ({error}); expected one object a line") from error
    if not isinstance(fields, dict):
        raise UserError(f"{name}: expected a JSON object, found {quoted(fields)}")
    if has_half_characters(json.dumps(fields, ensure_ascii=False)):
        raise UserError(f"{name}: half a character (a lone surrogate) in {quoted(line[0])}")
    return fields
