"""Items from lines of text or of JSON, each with its name for error messages."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data.text import has_half_characters, read_lines
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.predict.predictor import OnError, Predictor


class Input(NamedTuple):
    """The fields of an item, and its place (``FILE:12``)."""

    name: str
    fields: dict[str, Any]


def numbered_lines(source: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each line of a file, or of standard input (``-``).

    Raises:
        UserError: naming the line, if it is not UTF-8, or if the file cannot be read.
    """
    if source == "-":
        if isinstance(sys.stdin, io.TextIOWrapper):  # as a file is read, whatever the locale
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
        for number, line in enumerate(sys.stdin, start=1):
            if has_half_characters(line):
                raise UserError(f"standard input:{number}: not UTF-8")
            text = line.removeprefix("\ufeff") if number == 1 else line  # a byte order mark, as files may have
            yield f"standard input:{number}", text.rstrip("\r\n")
        return
    for number, line in read_lines(Path(source)):
        yield f"{source}:{number}", line


def read_json(lines: Iterable[tuple[str, str]], on_error: OnError | None) -> Iterator[Input]:
    """One JSON object a line; empty lines are skipped."""
    for name, line in lines:
        if not line.strip():
            continue
        try:
            yield Input(name, _object(line, name))
        except UserError as error:
            if on_error is None:
                raise
            on_error(0, error)


def read_text(
    lines: Iterable[tuple[str, str]], predictor: Predictor, on_error: OnError | None, *, tokenized: bool
) -> Iterator[Input]:
    """The natural input of a task.

    A line is an item, with a tab between its fields if it has several; empty lines are skipped. Where an item is a
    document, a line is a sentence, and an empty line ends the document.

    Args:
        lines: see :func:`numbered_lines`.
        predictor: of the task.
        on_error: is given the error of a line that is no item; without it such a line raises.
        tokenized: tokens are what stands between spaces.
    """
    fields = predictor.required_fields
    if predictor.reader.documents:
        for name, sentences in _paragraphs(lines):
            yield Input(name, {fields[0]: [_sentence(text, tokenized) for text in sentences]})
        return
    for name, line in lines:
        if not line.strip():
            continue
        parts = line.split("\t") if len(fields) > 1 else [line]
        if len(parts) != len(fields):
            error = UserError(f"{name}: expected {' and '.join(fields)} with a tab between, found {quoted(line)}")
            if on_error is None:
                raise error
            on_error(0, error)
            continue
        yield Input(name, {key: _sentence(part, tokenized) for key, part in zip(fields, parts, strict=True)})


def _sentence(text: str, tokenized: bool) -> str | list[str]:
    return [token for token in text.replace("\t", " ").split(" ") if token] if tokenized else text


def _paragraphs(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """The lines between empty ones, under the name of the first."""
    first, sentences = "", list[str]()
    for name, line in lines:
        if line.strip():
            first = first or name
            sentences.append(line)
        elif sentences:
            yield first, sentences
            first, sentences = "", []
    if sentences:
        yield first, sentences


def _object(line: str, name: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}: not JSON ({error}); expected one object a line") from error
    if not isinstance(fields, dict):
        raise UserError(f"{name}: expected a JSON object, found {quoted(fields)}")
    if has_half_characters(json.dumps(fields, ensure_ascii=False)):
        raise UserError(f"{name}: half a character (a lone surrogate) in {quoted(line)}")
    return fields
