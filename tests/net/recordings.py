"""Recordings: JSON by name, and how two of them differ."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"
_SMALL = 100_000  # bytes; larger ones are compressed
_LINES = 8  # of a difference that are shown


def _paths(part: str) -> tuple[Path, Path]:
    return FOLDER / f"{part}.json", FOLDER / f"{part}.json.xz"


def write(part: str, content: dict[str, Any]) -> Path:
    """Write a recording in place of an earlier one."""
    plain, packed = _paths(part)
    for path in (plain, packed):
        path.unlink(missing_ok=True)
    data = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
    path = plain if len(data) <= _SMALL else packed
    FOLDER.mkdir(exist_ok=True)
    path.write_bytes(data if path is plain else lzma.compress(data, preset=9))
    return path


def read(part: str) -> dict[str, Any]:
    """Read a recording."""
    plain, packed = _paths(part)
    if packed.exists():
        return dict(json.loads(lzma.decompress(packed.read_bytes())))
    return dict(json.loads(plain.read_bytes()))


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Some lines for each name that is new, gone or has another value."""
    found = []
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in after:
            found.append(f"{name}: gone")
        elif name not in before:
            found.append(f"{name}: new")
        elif before[name] != after[name]:
            found.append(f"{name}:\n{_difference(before[name], after[name])}")
    return found


def _difference(before: Any, after: Any) -> str:
    """The lines that only one of them has."""
    old, new = (
        (each if isinstance(each, str) else json.dumps(each, indent=1, ensure_ascii=False)).splitlines()
        for each in (before, after)
    )
    changed = [f"- {line}" for line in _without(old, new)] + [f"+ {line}" for line in _without(new, old)]
    shown = [line if len(line) <= 300 else f"{line[:300]} ..." for line in changed[:_LINES]]
    shown += [f"... {len(changed)} lines"] if len(changed) > _LINES else []
    return "\n".join(f"    {line}" for line in shown or ["the same lines in another order or number"])


def _without(lines: list[str], others: list[str]) -> list[str]:
    known = set(others)
    return [line for line in lines if line not in known]
