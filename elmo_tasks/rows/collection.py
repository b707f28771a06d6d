"""The rows of some folders: valid rows are used, other files are named and left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.rows.io import AnyRow, read_row
from elmo_tasks.rows.schema import FailedRow, Row
from elmo_tasks.rows.settings import setting_key

_SHOWN = 5  # files that are named one by one


@dataclass(frozen=True)
class Rows:
    """The content of some folders.

    Args:
        folders: the folders that were read.
        finished: rows of finished runs, by name.
        failed: rows of failed runs, by name.
        left_out: a sentence for each file that is in neither.
    """

    folders: tuple[Path, ...]
    finished: list[Row]
    failed: list[FailedRow]
    left_out: list[str]

    @property
    def all(self) -> list[AnyRow]:
        """The rows of finished and of failed runs, by name."""
        return sorted([*self.finished, *self.failed], key=lambda row: row.run_id)

    @cached_property
    def by_setting(self) -> dict[str, list[Row]]:
        """The finished rows by :func:`elmo_tasks.rows.settings.setting_key`."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.finished:
            found[setting_key(row.config, row.kind)].append(row)
        return dict(found)

    def notes(self) -> list[str]:
        """Notes on where the rows are from, and on what was left out and why."""
        notes = [f"rows: {len(self.finished)} in {', '.join(map(_readable, self.folders))}"]
        if self.failed:
            notes.append(f"failed runs: {len(self.failed)} (not included in any score)")
        if self.left_out:
            rest = len(self.left_out) - _SHOWN
            shown = "; ".join(self.left_out[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
            notes.append(f"left out: {len(self.left_out)} of the files, not included in any score ({shown})")
        return notes


def read_rows(folders: Iterable[Path]) -> Rows:
    """All rows of some folders (a missing folder has none).

    Of two rows of one run the newer one counts; that of a finished run counts more than that of a failed one. If they
    have the same dev scores, one with test scores counts more than one without, and nothing is said of the other. Rows
    of one biLM have mixes of one number of layers; of another number, as after a change by hand, they are left out.
    """
    folders = tuple(folders)
    rows: dict[str, AnyRow] = {}
    paths: dict[str, Path] = {}
    left_out: list[str] = []
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        try:
            row = read_row(path)
        except UserError as error:
            left_out.append(str(error))
            continue
        before = rows.get(row.run_id)
        if before is None or _rank(before, row) < _rank(row, before):
            if before is not None and not _are_equal(before, row):
                left_out.append(_replaced(paths[row.run_id], before, path, row))
            rows[row.run_id], paths[row.run_id] = row, path
        elif not _are_equal(before, row):
            left_out.append(_replaced(path, row, paths[row.run_id], before))
    for run_id, reason in _of_other_layers(rows.values()).items():
        del rows[run_id]
        left_out.append(f"{paths[run_id]}: {reason}")
    ordered = [rows[name] for name in sorted(rows)]
    return Rows(
        folders,
        [row for row in ordered if isinstance(row, Row)],
        [row for row in ordered if isinstance(row, FailedRow)],
        left_out,
    )


def moment(row: AnyRow) -> tuple[datetime, str]:
    """When a row was written; of two rows of one second the later name counts as newer."""
    return datetime.fromisoformat(row.created), row.run_id


def _rank(row: AnyRow, other: AnyRow) -> tuple[bool, int, tuple[datetime, str]]:
    """Which of two rows of one run counts: the larger one."""
    n_splits = len(row.scores) if isinstance(row, Row) and _are_equal(row, other) else 0
    return isinstance(row, Row), n_splits, moment(row)


def _are_equal(row: AnyRow, other: AnyRow) -> bool:
    """Whether two rows of one run say the same: both finished with the same dev scores, or both are one failed row."""
    if isinstance(row, Row) and isinstance(other, Row):
        return row.scores["dev"] == other.scores["dev"]
    return row == other


def _replaced(path: Path, row: AnyRow, by: Path, other: AnyRow) -> str:
    why = "which is newer" if row.status == other.status else "which has finished"
    return f"{path}: the same run as {by}, {why}"


def _of_other_layers(rows: Iterable[AnyRow]) -> dict[str, str]:
    """Rows whose mix has another number of layers than most rows of the same weights, and how that is said."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows:
        if isinstance(row, Row) and row.bilm is not None and row.elmo is not None and row.elmo.weights:
            counts[row.bilm.digest][row.run_id] = row.elmo.n_layers
    found = {}
    for n_layers in counts.values():
        ((usual, _),) = Counter(n_layers.values()).most_common(1)
        for run_id, n in n_layers.items():
            if n != usual:
                found[run_id] = f"its mix has {n} layers; with the same biLM other rows have {usual}"
    return found


def _readable(folder: Path) -> str:
    """A folder relative to the working directory, and whether it exists."""
    near = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return str(near) if folder.is_dir() else f"{near} (not there)"
