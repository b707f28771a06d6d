"""Which of the rows belong to a cell of a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from elmo_tasks.config.identity import own_words
from elmo_tasks.errors import UserError
from elmo_tasks.rows.collection import Rows, moment
from elmo_tasks.rows.fields import Split
from elmo_tasks.rows.grouping import data_digests, inputs
from elmo_tasks.rows.parts import Code
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.digests import digest_bilm, digest_data, digest_words
from elmo_tasks.tables.paper import Value
from elmo_tasks.tables.settings import Setting


def find_cell(
    rows: Rows,
    setting: Setting,
    *,
    split: Split,
    seeds: tuple[int, ...],
    ensemble: bool = False,
    paper: Value | None = None,
    bilm: str | None = None,
) -> Cell:
    """The rows of a setting that have a score on ``split``, one for each seed.

    Rows of different data files, word vectors or biLM weights are never averaged, even under the same names. The files
    that ``data.root``, ``words.path`` and ``bilm.path`` name decide which rows count. Without them it is the data with
    the most seeds, so that a short run on other data hides no finished cell, and the newest vectors and weights.

    Args:
        rows: all rows that were read.
        setting: of the cell.
        split: the split whose score is wanted.
        seeds: the seeds that are wanted, or the members of an ensemble.
        ensemble: whether one row of an ensemble is wanted.
        paper: the paper's value.
        bilm: digest of the biLM, if it is known although its files may be gone.

    Raises:
        UserError: if there is no folder of a name that the setting has, and if the rows are of different metrics.
    """
    candidates = _candidates(rows, setting, split, seeds, ensemble)
    current = [row for row in candidates if not ensemble or _averages_current(row, rows)]
    wanted = (*digest_data(setting), digest_words(setting))
    kept = _of_same_inputs(current, split, wanted, bilm or digest_bilm(setting))
    chosen = {row.seed or 0: row for row in kept}
    if len({row.metric.name for row in chosen.values()}) > 1:
        found = ", ".join(f"{row.run_id} ({row.metric.name})" for row in chosen.values())
        raise UserError(f"rows of one setting must have one metric, found {found}; move those that are wrong elsewhere")
    marks = {
        "a": 0 < len(chosen) < (1 if ensemble else len(seeds)),
        **_marks_of_rows(chosen.values(), split),
        "e": len(kept) > len(chosen),
        "f": len(kept) < len(candidates),
    }
    return Cell(
        setting=setting,
        split=split,
        seeds=seeds,
        ensemble=ensemble,
        rows=dict(sorted(chosen.items())),
        trained=tuple(_members(rows, setting, chosen.values()) if ensemble else chosen.values()),
        marks=tuple(mark for mark, holds in marks.items() if holds),
        paper=paper,
    )


def _candidates(rows: Rows, setting: Setting, split: Split, seeds: tuple[int, ...], ensemble: bool) -> list[Row]:
    """The rows of a setting with a score on ``split`` and a wanted seed, or the wanted members; the newest last."""
    scored = [row for row in rows.by_setting.get(setting.key, ()) if split in row.scores and _reads_words(row, setting)]
    if ensemble:
        found = [row for row in scored if row.ensemble is not None and row.ensemble.seeds == tuple(sorted(seeds))]
    else:
        found = [row for row in scored if row.ensemble is None and row.seed in seeds]
    return sorted(found, key=moment)


def _reads_words(row: Row, setting: Setting) -> bool:
    """Whether a row is of the user's file of word vectors that a setting names, or of a copy of it."""
    if own_words(row.config, row.kind) == own_words(setting.config, setting.kind):
        return True
    return row.data.word_vectors is not None and row.data.word_vectors == digest_words(setting)


def _averages_current(ensemble: Row, rows: Rows) -> bool:
    """Whether no member has been made again, with other weights, since the ensemble was scored."""
    assert ensemble.ensemble is not None
    weights = {row.run_id: row.weights for row in rows.finished}
    return all(weights.get(member.run_id, member.weights) == member.weights for member in ensemble.ensemble.members)


def _of_same_inputs(candidates: list[Row], split: Split, wanted: tuple[str | None, ...], bilm: str | None) -> list[Row]:
    """The rows of the files at hand (data, test data, word vectors and the biLM's), of whose digests None is any.

    Of those, the ones of the data with the most seeds (of equally many, the newest), that read what the newest did.
    """
    read = [(row, (*data_digests(row, split), row.data.word_vectors)) for row in candidates]
    kept = [row for row, digests in read if _fits(wanted, digests) and bilm in (None, inputs(row).bilm)]
    by_data: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in kept:
        by_data[data_digests(row, split)].append(row)
    most = max(by_data.values(), key=lambda rows: (len({row.seed for row in rows}), moment(rows[-1])), default=[])
    return [row for row in most if _read_the_same(row, most[-1], split)]


def _marks_of_rows(chosen: Collection[Row], split: Split) -> dict[str, bool]:
    """Which of the marks hold that are about code and items."""
    codes = [code for row in chosen for code in _code(row)]
    return {
        "b": len({code.commit for code in codes}) > 1,
        "c": any(code.dirty is not False for code in codes),
        "d": any(_is_limited(row, split) for row in chosen),
    }


def _fits(wanted: tuple[str | None, ...], found: tuple[str | None, ...]) -> bool:
    """Whether digests are those that are wanted; None is any, and a dev score rests on no test data."""
    return all(None in (one, other) or one == other for one, other in zip(wanted, found, strict=True))


def _read_the_same(row: Row, other: Row, split: Split) -> bool:
    return inputs(row) == inputs(other) and data_digests(row, split) == data_digests(other, split)


def _members(rows: Rows, setting: Setting, ensembles: Iterable[Row]) -> list[Row]:
    names = {member.run_id for row in ensembles if row.ensemble is not None for member in row.ensemble.members}
    return [row for row in rows.by_setting.get(setting.key, ()) if row.run_id in names]


def _code(row: Row) -> list[Code]:
    """The code that a row was made with: a run that was resumed may have been trained with several versions."""
    trained = () if row.training is None else row.training.code
    return [Code(commit=row.commit, dirty=row.dirty), *trained]


def _is_limited(row: Row, split: Split) -> bool:
    items = [row.data.items[name] for name in ("train", split) if name in row.data.items]
    return any(part.used != part.original for part in items)
