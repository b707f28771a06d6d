"""Rows and run folders as somebody may have changed them by hand: one to three changes of a whole one."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

LETTERS = "x" * 5000
WORDS = [
    "",
    " ",
    "none",
    "mini",
    "sst5",
    "ner",
    LETTERS,
    "a\nb",
    "\ud800",
    "\x00",
    "<script>alert(1)</script>",
    "../../x",
]
WORDS += [
    "${oc.env:HOME}",
    "a,b",
    "a=b",
    "[1]",
    "null",
    "1",
    "|",
    "\\input{x}",
    "NaN",
    "/dev/zero",
    "ünïcode",
    "a'b\"c",
]
NUMBERS = [0, 1, -1, 2, 3.5, 1e-300, 1e308, -1e308, 10**18, 10**400, -(10**400), 1e999, -1e999, float("nan"), 10**30]
OTHERS = [None, True, False, [], {}, [[]], [1, "a"], {"a": 1}, {"a": {"b": [None]}}, {"_target_": "os.getcwd"}]


def changed(whole: Any, seed: int) -> bytes:
    """A copy of a JSON value with one to three changes, as a text that need not be JSON (NaN, a lone surrogate)."""
    rng = random.Random(seed)
    value = copy.deepcopy(whole)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        _change(value, rng)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _change(value: Any, rng: random.Random) -> None:
    places = [*_places(value)]
    parent, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.12:
        del parent[key]
    elif kind < 0.2 and isinstance(parent, dict):
        parent[rng.choice(["own", "_target_", "a.b", *WORDS])] = _value(parent[key], rng)
    elif kind < 0.26 and isinstance(parent, dict):
        parent[str(rng.choice(WORDS))] = parent.pop(key)
    elif kind < 0.3:
        other, name = rng.choice(places)
        parent[key] = copy.deepcopy(other[name])
    else:
        parent[key] = _value(parent[key], rng)


def _value(before: Any, rng: random.Random) -> Any:
    """Another value, half of the time of the same type."""
    if rng.random() < 0.5:
        if isinstance(before, str):
            return rng.choice(WORDS)
        if isinstance(before, (int, float)):
            return rng.choice(NUMBERS)
        if isinstance(before, list):
            return rng.choice([[], before * 2, before[:-1], [*before, None]])
    kind = rng.choice([WORDS, NUMBERS, OTHERS])
    return copy.deepcopy(rng.choice(kind))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every key of every object and every position of every list."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(items):
        yield value, key
        yield from _places(part)
