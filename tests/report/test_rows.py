import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.report.document import text
from elmo_tasks.report.rows import read
from elmo_tasks.report.tables import results_table

MakeRow = Callable[..., dict[str, Any]]
WriteRows = Callable[..., Path]


def changed(row: dict[str, Any], key: str, value: Any, **more: Any) -> dict[str, Any]:
    """A copy in which ``a.b`` is something else, or is gone if the value is ``...``."""
    row = copy.deepcopy(row) | more
    *path, last = key.split(".")
    inner: Any = row
    for part in path:
        inner = inner[int(part)] if isinstance(inner, list) else inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return row


BROKEN = [
    ("run_id", ..., "run_id is missing"),
    ("task", "ner\n", "task must be a printable name, found 'ner\\n'"),
    ("status", "done", "status must be finished or failed, found 'done'"),
    ("schema", 2, "not a row of schema 1"),
    ("scores", {"test": {"f1": 1.0}}, "scores.dev is missing"),
    ("scores.dev.f1", ..., "scores.dev.f1 is missing"),
    ("scores.dev.f1", float("nan"), "scores.dev.f1 must be a finite number, found nan"),
    ("scores.dev.f1", float("inf"), "scores.dev.f1 must be a finite number, found inf"),
    ("scores.dev.f1", 1e301, "scores.dev.f1 must be a finite number, found 1e+301"),
    ("config.words.dim", 10**400, "holds a number that is too large"),
    ("scores.dev.f1", "80", "scores.dev.f1 must be a finite number, found '80'"),
    ("scores.dev.f1", True, "scores.dev.f1 must be a finite number, found True"),
    ("scores.test", {}, "scores.test.f1 is missing"),
    ("scores.test", [], "scores.test must be a mapping, found []"),
    ("task", "squad", "scores.dev.exact_match is missing"),
    ("data.train.used", 0, "data.train.used must be a whole number, 1 or more, found 0"),
    ("data.train", [], "data.train.original is missing"),
    ("elmo.placement", "middle", "elmo.placement must be none, input, output or both"),
    ("elmo.weights", {}, "elmo.weights must have the places of input, found []"),
    ("elmo.weights.input.s", [0.5, None], "elmo.weights must be finite s and gamma for each place"),
    ("bilm", None, "bilm.name is missing"),
    ("config.elmo.lambda", "0.1", "config.elmo.lambda must be a finite number"),
    ("config.trainer.precision", ..., "config.trainer.precision is missing"),
    ("curve", ..., "curve is missing"),
    ("curve.0.dev.f1", float("nan"), "curve must be points with epoch and finite dev scores"),
    ("curve.0.dev", {}, "curve 0.dev.f1 is missing"),
    ("device", "\ud800", "holds text that is no Unicode"),
]


@pytest.mark.parametrize(("key", "value", "sentence"), BROKEN)
def test_a_row_that_cannot_be_relied_on_is_named_and_left_out(
    make_row: MakeRow, write_rows: WriteRows, key: str, value: Any, sentence: str
) -> None:
    good = make_row(1, 80.0)
    folder = write_rows(good)
    (folder / "other.json").write_text(json.dumps(changed(make_row(2, 10.0), key, value)))
    rows = read(folder)
    assert rows.finished == [good]
    (left_out,) = rows.left_out
    assert left_out.startswith(f"{folder / 'other.json'}: ")
    assert sentence in left_out
    assert results_table(rows.finished).lines[0][-2] == "80.00"  # not a mean with what was left out
    assert text(rows).endswith("\n\n1 file left out as no usable row.")


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("data.train.positions", ..., "data.train.positions is missing"),
        ("data.vocabulary", 0, "data.vocabulary must be a whole number, 1 or more, found 0"),
        ("config.task.lm", ..., "config.task.lm.text is missing"),
        ("before", None, "before.perplexity is missing"),
        ("before.perplexity", float("inf"), "before.perplexity must be a finite number, found inf"),
        ("start.init", 3, "start.init must be a printable name, found 3"),
        ("scores.dev.backward", ..., "scores.dev.backward is missing"),
    ],
)
def test_a_training_of_a_bilm_that_cannot_be_relied_on_is_left_out(
    make_lm_row: MakeRow, write_rows: WriteRows, key: str, value: Any, sentence: str
) -> None:
    good = make_lm_row(1, 100.0, 50.0)
    rows = read(write_rows(good, changed(make_lm_row(2, 100.0, 50.0), key, value)))
    assert rows.finished == [good]
    (left_out,) = rows.left_out
    assert sentence in left_out


@pytest.mark.parametrize("content", ["", "{", "[]", "[" * 100_000, "\xff", '{"schema": 1}'])
def test_a_file_that_is_no_row_is_left_out(make_row: MakeRow, write_rows: WriteRows, content: str) -> None:
    folder = write_rows(make_row(1, 80.0))
    (folder / "other.json").write_bytes(content.encode("latin-1"))
    rows = read(folder)
    assert len(rows.finished) == len(rows.left_out) == 1
    assert "other.json: " in rows.left_out[0]


def test_every_good_row_is_taken_and_a_failed_one_is_kept_apart(make_row: MakeRow, write_rows: WriteRows) -> None:
    failed = {"schema": 1, "status": "failed", "run_id": "x", "task": "ner", "error": "RuntimeError: no"}
    rows = read(write_rows(make_row(1, 80.0), make_row(1, 70.0, placement="none"), failed))
    assert [row["elmo"]["placement"] for row in rows.finished] == ["input", "none"]
    assert rows.failed == [failed]
    assert not rows.left_out
    assert "left out" not in text(rows)


def test_a_copy_of_a_row_does_not_count_twice(make_row: MakeRow, write_rows: WriteRows) -> None:
    folder = write_rows(make_row(1, 80.0), make_row(2, 82.0))
    (folder / "zz copy.json").write_text(json.dumps(make_row(2, 82.0)))
    rows = read(folder)
    assert len(rows.finished) == 2
    assert rows.left_out == [f"{folder}/zz copy.json: the same run as {folder}/ner-input-l0.1-u1000-s2.json"]


def test_a_folder_without_rows_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no rows \(\*\.json\) here; a run writes its row into results\.dir$"):
        read(tmp_path)
    with pytest.raises(UserError, match="no rows"):
        read(tmp_path / "nowhere")
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(UserError, match=r"none of 1 files is a usable row; the first: .*a\.json"):
        read(tmp_path)


def test_the_committed_rows_can_all_be_relied_on() -> None:
    rows = read(Path(__file__).parents[2] / "experiments" / "rows")
    assert not rows.left_out
    assert not rows.failed
