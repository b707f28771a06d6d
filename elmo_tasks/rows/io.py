"""Rows as files: one strict reader, one writer."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json as parse_json

from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.files import read_bytes, write_json
from elmo_tasks.rows.schema import (
    SCHEMA,
    EnsembleRow,
    FailedRow,
    LanguageModelRow,
    Row,
    SenseProbeRow,
    SupervisedRow,
)

MAX_BYTES = 64 * 2**20
"""A larger file is not a row: a curve of 100,000 points takes a fifth of this."""

MAX_NUMBER = 1e100
"""No number of a row is as large."""

AnyRow = Row | FailedRow
_Finished = Annotated[SupervisedRow | LanguageModelRow | SenseProbeRow | EnsembleRow, Field(discriminator="kind")]
_ROW: TypeAdapter[AnyRow] = TypeAdapter(Annotated[_Finished | FailedRow, Field(discriminator="status")])


def to_json(row: AnyRow) -> dict[str, Any]:
    """A row as mappings and lists."""
    content: dict[str, Any] = json.loads(json.dumps(asdict(row), allow_nan=False))
    return content | {"status": content.pop("status")}


def from_text(content: bytes | str, name: str) -> AnyRow:
    """A row from JSON text.

    Raises:
        UserError: for whatever is wrong, missing or unknown; the sentence names the field.
    """
    try:
        document = parse_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise UserError(f"{name}: not a readable row ({error}); delete it and run the cell again") from None
    if not isinstance(document, dict) or "schema" not in document:
        raise UserError(f"{name}: not a row; move it out of the folder of rows")
    if document["schema"] != SCHEMA:
        found = repr(document["schema"])[:20]
        raise UserError(f"{name}: row of schema {found}, expected {SCHEMA}; delete it and run the cell again")
    _check_numbers(document, name)
    try:
        return _ROW.validate_json(content)
    except ValidationError as error:
        raise UserError(f"{name}: {_sentence(error)}") from None


def _check_numbers(document: dict[str, Any], name: str) -> None:
    """Check that means and deviations can be computed of every number, of the configuration too.

    Raises:
        UserError: naming the first that is too large.
    """
    left: list[tuple[str, Any]] = [("", document)]
    while left:
        where, value = left.pop()
        if isinstance(value, (dict, list)):
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            left += [(f"{where}.{shortened(str(key), 30)}".lstrip("."), part) for key, part in parts]
        elif isinstance(value, (int, float)) and not -MAX_NUMBER < value < MAX_NUMBER:
            raise UserError(f"{name}: {where} must be a number below {MAX_NUMBER:g}, found {quoted(value)}")


def from_json(content: dict[str, Any], name: str) -> AnyRow:
    """A row from mappings and lists; errors as of :func:`from_text`."""
    return from_text(json.dumps(content, allow_nan=False), name)


def read_row(path: Path) -> AnyRow:
    """One row.

    Raises:
        UserError: if the file is no row of this schema (see :func:`from_text`).
    """
    row = from_text(read_bytes(path, MAX_BYTES), str(path))
    if row.run_id != path.stem:
        raise UserError(f"{path}: run_id must be the file's name, found {quoted(row.run_id)}")
    return row


def write_row(path: Path, row: AnyRow) -> None:
    """Write a row, whole or not at all."""
    write_json(path, to_json(row))


def finished_row(path: Path) -> Row | None:
    """The row of a finished run; None where there is no row, or that of a failed run."""
    row = read_row(path) if path.exists() else None
    return row if isinstance(row, Row) else None


def prepare_folder(folder: Path) -> None:
    """Make the folder of the rows and see that it can be written, before any work is done.

    Raises:
        UserError: if not.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"results.dir={folder}: cannot be written ({error.strerror}); set it to another folder"
        ) from error


def _sentence(error: ValidationError) -> str:
    """The first problem, with the path of the field."""
    first = error.errors(include_url=False)[0]
    kind, *names = first["loc"][first["loc"][:1] == ("finished",) :] or ("",)  # before them, what chose the type
    where = ".".join(shortened(str(name), 30) for name in names) or "row"
    if first["type"].startswith("union_tag"):
        about = first["ctx"]
        expected = about.get("expected_tags", "named")
        found = f", found {quoted(about['tag'])}" if "tag" in about else ""
        return f"{about['discriminator'].strip(chr(39))} must be {expected}{found}"
    if first["type"] == "missing":
        return f"{where} is missing"
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{where} is not a field of a row"
    if first["input"] is None or first["type"] == "none_required":
        return f"{where} must be {'set' if first['input'] is None else 'null'} for kind {kind}"
    reason = shortened(first["msg"].removeprefix("Value error, ").removeprefix("Input should be "), 200)
    if not names:  # of the whole row: the sentence names the fields itself
        return reason
    reason = shortened(reason, 120)
    expected = reason if reason.startswith("must") else f"must be {reason}"
    return f"{where} {expected}, found {quoted(first['input'], 60)}"
