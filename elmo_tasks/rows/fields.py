"""Types of the fields of a row, with checks beyond the Python type."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, Strict

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
"""The checks of every part of a row: no unknown field, no conversion ("1" is no number), no NaN."""

FROM_LIST = Strict(False)
"""Of a tuple, which JSON has as a list."""

MAX_NAME = 255
"""The most characters of a name, as of a file's."""


def _name(value: str) -> str:
    if len(value) <= MAX_NAME:
        return _place(value)
    raise ValueError(f"must be a name of at most {MAX_NAME} characters")


def _place(value: str) -> str:
    if value and value.isprintable():
        return value
    raise ValueError("must be a printable name")


def _time(value: str) -> str:
    if datetime.fromisoformat(value).tzinfo is None:
        raise ValueError("must be an ISO time with its zone")
    return value


def _relative(value: str) -> str:
    path = PurePosixPath(_place(value))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError("must be a path below the folder of the rows")
    return value


Kind = Literal["supervised", "language_model", "sense_probe", "ensemble"]
Split = Literal["dev", "test"]
Placement = Literal["none", "input", "output", "both"]
Place = Literal["input", "output"]
Ended = Literal["patience", "max_epochs", "max_steps", "diverged"]

Name = Annotated[str, AfterValidator(_name)]
FolderName = Annotated[str, AfterValidator(_place)]
Time = Annotated[str, AfterValidator(_time)]
RelativePath = Annotated[str, AfterValidator(_relative)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Scores = dict[Name, float]
