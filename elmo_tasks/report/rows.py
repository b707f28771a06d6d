"""The rows of a report: what can be relied on is counted, the rest is named and left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.report.check import Row, check, moment
from elmo_tasks.report.groups import place
from elmo_tasks.results import read_row

__all__ = ["Row", "Rows", "read"]


@dataclass(frozen=True)
class Rows:
    """What a folder holds.

    Args:
        finished: rows that have every field that a table or a figure reads, by file name.
        failed: rows of failed runs, by file name.
        left_out: a sentence for each file that is in neither.
    """

    finished: list[Row]
    failed: list[Row]
    left_out: list[str]

    @property
    def note(self) -> str:
        """How many files were left out, in a sentence; empty if none."""
        n = len(self.left_out)
        return f"{n} file{'s' * (n > 1)} left out: no usable row, or a run or seed that another row has." if n else ""


def read(folder: str | Path) -> Rows:
    """Read and check the rows of a folder; of a run, and of a seed of a setting, the newest row counts.

    Raises:
        UserError: if there is none.
    """
    paths = sorted(Path(folder).glob("*.json"))
    if not paths:
        raise UserError(f"{folder}: no rows (*.json) here; a run writes its row into results.dir")
    usable: dict[Path, Row] = {}
    left_out: dict[Path, str] = {}
    for path in paths:
        try:
            row = read_row(path)
            check(row, path)
            usable[path] = row
        except UserError as error:
            left_out[path] = str(error)
    _keep_newest(usable, left_out, lambda row: row["run_id"], "the same run as")
    _keep_newest(usable, left_out, place, "an older run of the setting and seed of")
    if not usable:
        raise UserError(f"{folder}: none of {len(paths)} files is a usable row; the first: {left_out[paths[0]]}")
    rows = list(usable.values())
    return Rows(
        [row for row in rows if row["status"] == "finished"],
        [row for row in rows if row["status"] == "failed"],
        [left_out[path] for path in sorted(left_out)],
    )


def _keep_newest(rows: dict[Path, Row], left_out: dict[Path, str], key: Callable[[Row], Any], why: str) -> None:
    """Of rows with one key, leave all but the newest out; of equally old ones, the first file's stays."""
    newest: dict[Any, Path] = {}
    for path in sorted(sorted(rows, reverse=True), key=lambda path: moment(rows[path])):
        newest[key(rows[path])] = path
    for path, row in list(rows.items()):
        if newest[key(row)] != path:
            left_out[path] = f"{path}: {why} {newest[key(row)]}"
            del rows[path]
