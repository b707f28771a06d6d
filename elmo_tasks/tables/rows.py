"""Rows of one or more folders, by setting; what cannot be used is named, never guessed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.report.check import Row, check
from elmo_tasks.results import fingerprint, read_row
from elmo_tasks.tables.settings import identity

__all__ = ["Row", "Rows", "read_rows"]

_SHOWN = 5  # files that are named one by one


@dataclass
class Rows:
    """The finished runs of some folders.

    Args:
        folders: that were read.
        by_setting: rows by their setting's key (see ``settings.py``).
        left_out: a sentence for each file that is no usable row.
    """

    folders: tuple[Path, ...]
    by_setting: dict[str, list[Row]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def notes(self) -> list[str]:
        """Where the rows are from, and how many files could not be used and why."""
        n = sum(map(len, self.by_setting.values()))
        notes = [f"rows: {n} in {', '.join(map(_readable, self.folders))}"]
        if self.left_out:
            rest = len(self.left_out) - _SHOWN
            shown = "; ".join(self.left_out[:_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
            notes.append(f"left out: {len(self.left_out)} of the files, no part of any figure ({shown})")
        return notes


def _readable(folder: Path) -> str:
    """A folder as seen from here, and whether it is there at all."""
    near = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return str(near) if folder.is_dir() else f"{near} (not there)"


def read_rows(folders: Iterable[Path]) -> Rows:
    """All rows of some folders (one that is not there has none); a run that is in two of them counts once."""
    found: dict[str, list[Row]] = defaultdict(list)
    rows = Rows(tuple(folders), found)
    seen: dict[tuple[str, str], Row] = {}
    for path in (path for folder in rows.folders for path in sorted(folder.glob("*.json"))):
        try:
            row = read_row(path)
            key = _key_of(row, path)
        except UserError as error:
            rows.left_out.append(str(error))
            continue
        same = seen.setdefault((row["run_id"], row["created"]), row)
        if same is row:
            found[key].append(row)
    return rows


def _key_of(row: Row, path: Path) -> str:
    """The key of a row's setting, once all that is read of it has been seen to be there (see ``report/check.py``).

    Raises:
        UserError: if the row can be no part of a figure.
    """
    check(row, path)
    if row["status"] == "failed":
        raise UserError(f"{path}: a run that failed ({row.get('error', 'no error given')})")
    try:
        return fingerprint(identity(row["config"]))
    except (KeyError, TypeError, AttributeError) as error:
        why = f"a part that a table needs is not there ({type(error).__name__}: {error})"
        raise UserError(f"{path}: {why}") from error
