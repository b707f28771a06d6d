"""Rows and run folders as somebody may have changed them by hand: one to three changes of a whole one."""

from __future__ import annotations

import copy
import json
import random
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmo_tasks.errors import MAX_SENTENCE
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.rows.io import AnyRow, to_json

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


KINDS = runpy.run_path(str(Path(__file__).parents[1] / "rows" / "conftest.py"))
NAMES = ("supervised", "failed", "language_model", "ensemble", "sense_probe")


def whole_rows() -> Iterator[dict[str, Any]]:
    """A row of each kind."""
    for name in NAMES:
        supervised = copy.deepcopy(KINDS["HEADER"] | KINDS["MEASURED"])
        make = KINDS[name].__wrapped__  # the function of a fixture
        row = make() if name in ("supervised", "failed") else make(supervised)
        yield {**row, "run_id": f"{name}-1"}


WHOLE = [*whole_rows()]


def write(folder: Path, content: bytes, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    path.write_bytes(content)
    return path


def changed_row(seed: int) -> tuple[str, bytes]:
    """The run id of a whole row, and a changed copy."""
    row = WHOLE[seed % len(WHOLE)]
    return row["run_id"], changed(row, seed)


def read_changed(folder: Path, seed: int) -> AnyRow | None:
    """A changed row, with all that its file says, or None where it is left out.

    Raises:
        AssertionError: if it is read as another row, or left out in anything but one sentence.
    """
    run_id, content = changed_row(seed)
    path = write(folder, content, run_id)
    found = read_rows([folder])
    path.unlink()
    assert len(found.left_out) + len(found.all) == 1, seed
    for sentence in found.left_out:
        assert str(path) in sentence, seed
        assert len(sentence) - len(str(path)) <= MAX_SENTENCE, seed
        assert sentence.isprintable(), seed
        return None
    (row,) = found.all
    assert _same_form(to_json(row)) == _same_form(json.loads(content)), seed
    return row


def _same_form(value: Any) -> Any:
    """JSON in which null and an empty list are as no value, and a whole number as the float of it."""
    if isinstance(value, dict):
        return {key: _same_form(part) for key, part in value.items() if part is not None and part != []}
    if isinstance(value, list):
        return [_same_form(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
