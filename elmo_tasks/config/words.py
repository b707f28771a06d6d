"""A type in words, and what is wrong with a value of it: for errors, help and the manual."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from elmo_tasks.errors import quoted, shortened
from elmo_tasks.values import Matching, Range

ANYTHING = "anything"
_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", NoneType: "null"}


@dataclass(frozen=True)
class InWords:
    """Metadata of an annotation whose values need words of their own."""

    words: str


def in_words(annotation: Any) -> str:
    """What a value must be: ``a whole number of at least 1, or null``; a class, such as a model, is anything."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        known = (each for each in arguments[1:] if isinstance(each, (Range, Matching, InWords)))
        limit = next(known, None)
        if limit is None:
            return in_words(arguments[0])
        return _bounds(arguments[0], limit) if isinstance(limit, Range) else limit.words
    if origin is Literal:
        names = ", ".join(map(str, arguments))
        return f"one of {names}" if len(arguments) > 1 else names
    if origin in (Union, UnionType):
        words = " or ".join(dict.fromkeys(in_words(each) for each in arguments if each is not NoneType))
        return f"{words}, or null" if NoneType in arguments else words
    if origin in (list, tuple, Sequence):
        length = len(arguments) if origin is tuple and Ellipsis not in arguments else "one or more"
        return f"a list of {length}, each {in_words(arguments[0])}"
    if origin in (dict, Mapping) or annotation is dict:
        return "keys with values"
    return "a section with keys" if _is_section(annotation) else _PLAIN.get(annotation, ANYTHING)


def _bounds(kind: Any, limit: Range) -> str:
    """``a whole number from 1 to 1,000``, ``a number above 0 and below 1``."""
    if kind is int:
        low = f"{int(limit.low):,}"
        bounded = f"a whole number from {low} to {limit.high:,.0f}"
        return f"a whole number of at least {low}" if math.isinf(limit.high) else bounded
    if not limit.above and not limit.below and math.isfinite(limit.high):
        return f"a number from {limit.low:g} to {limit.high:g}"
    low = f"a number above {limit.low:g}" if limit.above else f"a number of at least {limit.low:g}"
    high = f" and {'below' if limit.below else 'at most'} {limit.high:g}"
    return low if math.isinf(limit.high) else low + high


def must_be(key: str, annotation: Any, value: Any) -> str:
    """The sentence on a wrong value of a key."""
    finite = "finite, " if isinstance(value, float) and not math.isfinite(value) else ""
    return f"{key} must be {finite}{in_words(annotation)}, found {quoted(value)}"


def unknown_key(key: str, known: Sequence[str]) -> str:
    """The sentence on a key that a section does not have."""
    return f"unknown key {quoted(key)}; expected one of {shortened(', '.join(known), 200)}"


def fields_of(section: type[BaseModel]) -> dict[str, Any]:
    """The annotation of each key of a section."""
    return {field.alias or name: field.rebuild_annotation() for name, field in section.model_fields.items()}


def section_of(annotation: Any, kind: object = None) -> type[BaseModel] | None:
    """The section that an annotation stands for, alone or beside null; of several, the one of a kind."""
    if _is_section(annotation):
        section: type[BaseModel] = annotation
        kinds = section.model_fields.get("kind")
        return section if kind is None or kinds is None or kind in get_args(kinds.annotation) else None
    found = (section_of(each, kind) for each in get_args(annotation))
    return next((section for section in found if section is not None), None)


def first_problem(error: ValidationError, model: type[BaseModel], tree: Any) -> str:
    """The sentence on one problem of a tree that a model refuses; an unknown key, often a misspelt one, comes first."""
    problems = error.errors(include_url=False)
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    key, annotation, value = "", model, tree
    for part in first["loc"]:
        kind = value.get("kind") if isinstance(value, dict) else None
        section = section_of(annotation, kind)
        if section is None or not isinstance(value, dict):
            break  # in a list: all of it is shown
        if part == kind and part not in value:
            continue  # pydantic's own name of the section of this kind
        known, key = fields_of(section), f"{key}.{part}".removeprefix(".")
        if part not in known:
            return unknown_key(key, list(known))
        if part not in value:
            expected = in_words(known[part])
            return f"{key} is missing" + (f"; it must be {expected}" if section_of(known[part]) is None else "")
        annotation, value = known[part], value[part]
    return must_be(key or "the configuration", annotation, value)


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
