"""Which values are valid, in words and as a check, from the annotation of a parameter or field."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from elmo_tasks.values import Matching, Range

Rule = tuple[str, Callable[[Any], bool]]


def find_rule(annotation: Any) -> Rule:
    """The rule of an annotation; an annotation that is not about plain values, such as a class, allows everything."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _narrowed(arguments[0], arguments[1])
    if origin is Literal:
        return _choice(*arguments)
    if origin in (Union, UnionType):
        return _either(*arguments)
    if origin is tuple and Ellipsis not in arguments:
        return _list(find_rule(arguments[0]), len(arguments))
    if origin in (list, tuple, Sequence):
        return _list(find_rule(arguments[0]))
    if origin in (dict, Mapping) or annotation is dict:
        return "keys with values", lambda value: isinstance(value, dict)
    return _PLAIN.get(annotation, ("anything", lambda value: True))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    """Whether it is finite, and no whole number that is too large for a float."""
    largest = sys.float_info.max
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -largest <= value <= largest


_PLAIN: dict[Any, Rule] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", _is_whole),
    float: ("a number", _is_number),
    str: ("a text", lambda value: isinstance(value, str) and value != ""),
    NoneType: ("null", lambda value: value is None),
}


def _narrowed(kind: Any, limit: Range | Matching) -> Rule:
    _, is_kind = _PLAIN[kind]
    if isinstance(limit, Matching):
        return limit.words, lambda value: is_kind(value) and re.fullmatch(limit.pattern, value) is not None

    def check(value: float) -> bool:
        above = value > limit.low if limit.above else value >= limit.low
        return above and (value < limit.high if limit.below else value <= limit.high)

    return _in_words(kind, limit), lambda value: is_kind(value) and check(value)


def _in_words(kind: Any, limit: Range) -> str:
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


def _choice(*choices: Any) -> Rule:
    names = ", ".join(map(str, choices))
    return (
        f"one of {names}" if len(choices) > 1 else names,
        lambda value: any(type(value) is type(choice) and value == choice for choice in choices),
    )


def _either(*annotations: Any) -> Rule:
    rules = [find_rule(each) for each in annotations if each is not NoneType]
    words = " or ".join(dict.fromkeys(text for text, _ in rules))
    if NoneType in annotations:
        return f"{words}, or null", lambda value: value is None or any(check(value) for _, check in rules)
    return words, lambda value: any(check(value) for _, check in rules)


def _list(rule: Rule, length: int | None = None) -> Rule:
    """A list of a given length, or of any length but 0."""
    text, check = rule
    return (
        f"a list of {length or 'one or more'}, each {text}",
        lambda value: (
            isinstance(value, (list, tuple)) and len(value) == (length or max(1, len(value))) and all(map(check, value))
        ),
    )
