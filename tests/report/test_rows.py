import copy
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from elmo_tasks.errors import UserError
from elmo_tasks.report.check import MAIN_SCORES
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
    ("created", ..., "created is missing"),
    ("created", "yesterday", "created must be an ISO time with its zone, found 'yesterday'"),
    ("created", "2026-01-01T00:00:00", "created must be an ISO time with its zone, found '2026-01-01T00:00:00'"),
    ("commit", ["c0ffee"], "commit must be a name or null"),
    ("seed", True, "seed must be a whole number, 0 or more, found True"),
    ("seed", None, "seed must be a whole number, 0 or more, found None"),
    ("ensemble", {"seeds": [1, "2"]}, "ensemble.seeds must be a list of whole numbers"),
    ("scores.dev.f1", 700.0, "scores.dev.f1 must be a number from 0 to 100, found 700.0"),
    ("scores.dev.f1", -0.1, "scores.dev.f1 must be a number from 0 to 100, found -0.1"),
    ("curve.0.dev.f1", 100.1, "curve 0.dev.f1 must be a number from 0 to 100, found 100.1"),
    ("data.dev", [], "data.dev must be a mapping, found []"),
    ("config.task.metric", {"_target_": "elmo_tasks.metrics.accuracy.Accuracy"}, "metric must be accuracy, that"),
    ("config.elmo.placement", "none", "config.elmo.placement must be input, as elmo.placement is"),
    ("task", "ner\n", "task must be a printable name, found 'ner\\n'"),
    ("status", "done", "status must be finished or failed, found 'done'"),
    ("schema", 2, "not a row of schema 1"),
    ("scores", {"test": {"f1": 1.0}}, "scores.dev is missing"),
    ("scores.dev.f1", ..., "scores.dev.f1 is missing"),
    ("scores.dev.f1", float("nan"), "scores.dev.f1 must be a number from 0 to 100, found nan"),
    ("scores.dev.f1", float("inf"), "scores.dev.f1 must be a number from 0 to 100, found inf"),
    ("scores.dev.f1", 1e301, "scores.dev.f1 must be a number from 0 to 100, found 1e+301"),
    ("config.words.dim", 10**400, "holds a number that is too large"),
    ("scores.dev.f1", "80", "scores.dev.f1 must be a number from 0 to 100, found '80'"),
    ("scores.dev.f1", True, "scores.dev.f1 must be a number from 0 to 100, found True"),
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
    ("curve.0.dev.f1", float("nan"), "curve must be points with epoch, step and finite dev scores"),
    ("curve.0.step", ..., "curve must be points with epoch, step and finite dev scores"),
    ("curve", [], "curve must be points with epoch, step and finite dev scores, found []"),
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
    assert text(rows).endswith("\n\n1 file left out: no usable row, or a run or seed that another row has.")


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("data.train.positions", ..., "data.train.positions is missing"),
        ("data.vocabulary", 0, "data.vocabulary must be a whole number, 1 or more, found 0"),
        ("config.task.lm", ..., "config.task.lm.text is missing"),
        ("before", None, "before.perplexity is missing"),
        ("before.perplexity", float("inf"), "before.perplexity must be a finite number, found inf"),
        ("start.init", 3, "start.init must be a printable name, found 3"),
        ("exported", ..., "exported.folder is missing"),
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
    failed["created"] = "2026-01-01T00:00:00+00:00"
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


@pytest.mark.parametrize("first", ["a", "z"])
def test_of_two_rows_for_a_seed_the_newer_counts_and_the_other_is_named(
    make_row: MakeRow, write_rows: WriteRows, first: str
) -> None:
    rows = [make_row(seed, 80.0 + seed) for seed in (1, 2)]
    zone = {"run_id": f"{first}-again", "created": "2026-01-01T01:30:00+02:00"}  # the last text, the first time
    folder = write_rows(*rows, make_row(1, 20.0) | zone)
    found = read(folder)
    assert found.finished == rows
    newer = folder / f"{rows[0]['run_id']}.json"
    assert found.left_out == [f"{folder}/{first}-again.json: an older run of the setting and seed of {newer}"]
    assert results_table(found.finished).lines[0][-4:] == ["2", "f1", "81.50 ± 0.71", "-"]


def test_a_newer_copy_of_a_run_counts_whatever_its_file_is_called(make_row: MakeRow, write_rows: WriteRows) -> None:
    folder = write_rows(make_row(1, 80.0))
    newer = make_row(1, 90.0) | {"created": "2026-01-02T00:00:00+00:00"}
    (folder / "zz copy.json").write_text(json.dumps(newer))
    assert read(folder).finished == [newer]


def test_rows_of_one_seed_that_differ_in_their_setting_all_count(
    make_row: MakeRow, make_lm_row: MakeRow, write_rows: WriteRows
) -> None:
    row = make_row(1, 80.0)
    rows = [
        row,
        make_row(1, 80.0, l2=1.0),
        make_row(1, 80.0, placement="none"),
        changed(row, "data.digest", "e", run_id="data"),
        changed(row, "bilm.digest", "c", run_id="weights"),
        changed(row, "config.bilm", {"precision": "bfloat16"}, run_id="precision"),
        changed(row, "config.trainer.max_epochs", 5, run_id="schedule"),
        *(
            changed(row, "elmo.weights", {}, run_id=f"ensemble{n}", seed=None, ensemble={"seeds": [1, 2, n]})
            for n in (3, 4)
        ),
        make_lm_row(1, 100.0, 50.0),
        changed(make_lm_row(1, 100.0, 50.0), "config.task.lm.text", "ner", run_id="lm"),
    ]
    found = read(write_rows(*rows))
    assert not found.left_out
    assert len(found.finished) == len(rows)


def test_the_main_score_of_every_metric_is_known() -> None:
    for path in (Path(__file__).parents[2] / "conf" / "task").glob("*.yaml"):
        target = OmegaConf.load(path).metric["_target_"]
        module, _, name = target.rpartition(".")
        assert getattr(importlib.import_module(module), name).name == MAIN_SCORES[target]


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
