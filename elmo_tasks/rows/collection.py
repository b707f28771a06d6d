"""The rows of some folders: valid rows are used, other files are named and left out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from elmo_tasks.config.identity import own_words, setting_key
from elmo_tasks.errors import UserError
from elmo_tasks.rows.fields import Split
from elmo_tasks.rows.io import AnyRow, read_row
from elmo_tasks.rows.schema import FailedRow, Row
from elmo_tasks.rows.settings import Setting, moment, newest_of_each_seed

_SHOWN = 5  # files that are named one by one


@dataclass(frozen=True)
class FilesAtHand:
    """Digests of the files that a run would read; None is not known, or any.

    Args:
        data: of train and dev.
        test: of the test data.
        words: of the user's word vectors.
        words_path: where these are; None for the package's.
        bilm: of the weights of the user's biLM.
    """

    data: str | None = None
    test: str | None = None
    words: str | None = None
    words_path: str | None = None
    bilm: str | None = None

    def has_words_of(self, row: Row) -> bool:
        """Whether a row is of the user's file of word vectors, or of a copy of it."""
        if own_words(row.config, row.kind) == self.words_path:
            return True
        return row.data.word_vectors is not None and row.data.word_vectors == self.words

    def fit(self, row: Row, split: Split) -> bool:
        """Whether a row's score is that of these files; a dev score rests on no test data."""
        data, test = row.data_digests(split)
        read = ((self.data, data), (self.test, test), (self.words, row.data.word_vectors))
        same = all(None in (wanted, found) or wanted == found for wanted, found in read)
        return same and self.bilm in (None, row.inputs.bilm)


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
    def by_name(self) -> dict[str, Row]:
        """The finished rows by the name of their run."""
        return {row.run_id: row for row in self.finished}

    @cached_property
    def by_key(self) -> dict[str, list[Row]]:
        """The finished rows by :func:`elmo_tasks.config.identity.setting_key`, the newest last."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(self.finished, key=moment):
            found[setting_key(row.config, row.kind)].append(row)
        return dict(found)

    @cached_property
    def settings(self) -> list[Setting]:
        """All finished rows by key, input files, metric and (for ensembles) members, in order of task and name."""
        found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
        for key, rows in self.by_key.items():
            for row in rows:
                members = [member.seed for member in row.members]
                found[row.kind, key, row.inputs, row.words, row.metric, *members].append(row)
        made = [newest_of_each_seed(rows, self.by_name) for rows in found.values()]
        return sorted(made, key=lambda one: (one.first.task, one.first.slug, one.first.run_id))

    def find(
        self, key: str, split: Split, seeds: Collection[int], files: FilesAtHand, *, ensemble: bool = False
    ) -> tuple[Setting, bool]:
        """The rows of a setting that have a score on a split, one for each seed.

        Rows of different data files, word vectors or biLM weights are never averaged, even under the same names. The
        files at hand decide which rows count. Where they are not known, it is the data with the most seeds, so that a
        short run on other data hides no finished cell, and the newest vectors and weights.

        Args:
            key: of the setting.
            split: the split whose score is wanted.
            seeds: that are wanted, or the members of an ensemble.
            files: that a run would read.
            ensemble: whether one row of an ensemble is wanted.

        Returns:
            the setting, and whether rows of other files were left out.

        Raises:
            UserError: if the rows are of different metrics.
        """
        candidates = [
            row
            for row in self.by_key.get(key, ())
            if split in row.scores
            and files.has_words_of(row)
            and (_has_members(row, seeds) if ensemble else not row.members and row.seed in seeds)
        ]
        kept = [row for row in candidates if files.fit(row, split) and self._averages_current(row)]
        kept = _most_seeds(kept, split)
        setting = newest_of_each_seed(kept, self.by_name)
        if len({row.metric.name for row in setting.rows}) > 1:
            found = ", ".join(f"{row.run_id} ({row.metric.name})" for row in setting.rows)
            raise UserError(
                f"rows of one setting must have one metric, found {found}; move those that are wrong elsewhere"
            )
        return setting, len(kept) < len(candidates)

    def _averages_current(self, row: Row) -> bool:
        """Whether no member has been made again, with other weights, since an ensemble was scored."""
        now = {member.run_id: self.by_name[member.run_id] for member in row.members if member.run_id in self.by_name}
        return all(now[member.run_id].weights == member.weights for member in row.members if member.run_id in now)

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


def _has_members(row: Row, seeds: Collection[int]) -> bool:
    return bool(row.members) and [member.seed for member in row.members] == sorted(seeds)


def _most_seeds(rows: Sequence[Row], split: Split) -> list[Row]:
    """The rows of the data with the most seeds (of equally many, the newest), that read what the newest of them did."""
    by_data: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        by_data[row.data_digests(split)].append(row)
    most = max(by_data.values(), key=lambda same: (len({row.seed for row in same}), moment(same[-1])), default=[])
    return [row for row in most if row.inputs == most[-1].inputs]


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
