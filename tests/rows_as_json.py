"""Rows as plain mappings, for tests that compare them."""

from pathlib import Path
from typing import Any

from elmo_tasks.rows import io


def load(folder: str | Path, status: str = "finished") -> list[dict[str, Any]]:
    """All rows of a folder with this status, by file name."""
    rows = [io.to_json(io.read_row(path)) for path in sorted(Path(folder).glob("*.json"))]
    return [row for row in rows if row["status"] == status]
