"""Rows as plain mappings, for tests that compare them."""

from pathlib import Path
from typing import Any

from elmo_tasks.rows import io


def load(folder: str | Path, status: str = "finished") -> list[dict[str, Any]]:
    """All rows of a folder with this status, by file name."""
    return [row for row in map(io.to_json, io.load(folder)) if row["status"] == status]
