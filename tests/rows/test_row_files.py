"""The one reader and the one writer of rows: every wrong, missing or unknown field is one sentence."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.rows.io import MAX_BYTES, finished_row, from_text, read_row, to_json, write_row
from elmo_tasks.rows.schema import FailedRow, Row

Json = dict[str, Any]
MIX = {"s": [0.2, 0.7, 0.1], "gamma": 1.5}
OPTIONAL = {("schema",), ("status",)}  # tested below
OPTIONAL |= {("data", "word_vectors"), ("training", "code")}
FREE = (  # mappings with keys of their own
    ("config",),
    ("versions",),
    ("files",),
    ("scores",),
    ("data", "items"),
    ("data", "left_out"),
    ("elmo", "weights"),
    ("language_model", "before"),
    ("language_model", "positions"),
    ("sense_probe", "instances"),
    ("sense_probe", "first_sense"),
)
KINDS = ("supervised", "language_model", "ensemble", "sense_probe", "failed")


def read(row: Json) -> Row | FailedRow:
    return from_text(json.dumps(row), "x.json")


def refused(row: Json) -> str:
    with pytest.raises(UserError) as error:
        read(row)
    return str(error.value)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*path, key)
            yield from leaves(part, (*path, key))


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_each_kind_is_read_and_written(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    content = request.getfixturevalue(kind)
    row = read(content)
    path = tmp_path / f"{row.run_id}.json"
    write_row(path, row)
    assert read_row(path) == row
    assert to_json(row) == content == json.loads(path.read_text())
    assert isinstance(row, FailedRow if kind == "failed" else Row)


@pytest.mark.parametrize("kind", KINDS)
def test_each_missing_field_is_named(kind: str, request: pytest.FixtureRequest) -> None:
    content = request.getfixturevalue(kind)
    n = 0
    for path in leaves(content):
        if path[:2] in OPTIONAL or any(path[: len(f)] == f and len(path) > len(f) for f in FREE):
            continue
        broken = copy.deepcopy(content)
        place = broken
        for part in path[:-1]:
            place = place[part]
        del place[path[-1]]
        message = refused(broken)
        assert str(path[-1]) in message, path
        n += 1
    assert n >= 13


def test_sections_of_other_kinds_are_read_as_null_and_are_no_fields_otherwise(supervised: Json) -> None:
    unset = dict.fromkeys(("language_model", "ensemble", "sense_probe"))
    assert read(supervised | unset) == read(supervised)
    assert "x.json: ensemble is not a field of a row" in refused(supervised | {"ensemble": {"members": []}})


def test_rows_of_before_some_fields_were_recorded_are_read(supervised: Json) -> None:
    del supervised["data"]["word_vectors"], supervised["training"]["code"]
    row = read(supervised)
    assert isinstance(row, Row)
    assert row.training is not None
    assert (row.data.word_vectors, row.training.code) == (None, ())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seed": "1"}, "x.json: seed must be a valid integer, found '1'"),
        ({"seed": True}, "x.json: seed must be a valid integer, found True"),
        ({"seed": -1}, "seed must be greater than or equal to 0"),
        ({"more": 1}, "x.json: more is not a field of a row"),
        ({"task": "a\nb"}, "task must be a printable name"),
        ({"created": "2026-01-01"}, "created must be an ISO time with its zone"),
        ({"created": "soon"}, "created must"),
        ({"kind": "guess"}, "kind must be 'supervised', 'language_model', 'sense_probe', 'ensemble', found 'guess'"),
        ({"schema": 1}, "x.json: row of schema 1, expected 3; delete it and run the cell again"),
        ({"status": "running"}, "status"),
        ({"scores": {}}, "x.json: scores.dev is missing"),
        ({"scores": {"dev": {"f1": 60.0}}}, "x.json: scores.dev.accuracy is missing"),
        ({"scores": {"dev": {"accuracy": 100.1}}}, "scores.dev.accuracy must lie in [0.0, 100.0], found 100.1"),
        ({"scores": {"train": {"accuracy": 1.0}}}, "scores.train"),
        ({"files": {"../x": "ab" * 32}}, "files"),
        ({"files": {"/x": "ab" * 32}}, "files"),
        ({"weights": "nothing"}, "weights must"),
        ({"training": None}, "x.json: training must be set for kind supervised"),
        ({"elmo": None}, "x.json: elmo must be set for kind supervised"),
        ({"seed": None}, "x.json: seed must be set for kind supervised"),
        ({"bilm": None}, "x.json: bilm must be set for placement input"),
        ({"kind": "sense_probe"}, "x.json: training must be null for kind sense_probe"),
        ({"kind": "sense_probe", "training": None}, "x.json: sense_probe is missing"),
        ({"elmo": {"placement": "both", "mix": "scalar", "weights": {}}}, "elmo.weights must have the places"),
        (
            {"elmo": {"placement": "both", "mix": "scalar", "weights": {"input": MIX, "output": MIX | {"s": [1.0]}}}},
            "elmo.weights must have as many layers at one place as at the other",
        ),
    ],
)
def test_each_wrong_field_is_named(supervised: Json, change: Json, sentence: str) -> None:
    assert sentence in refused(supervised | change)


def test_a_correlation_below_zero_and_a_large_perplexity_are_scores(supervised: Json, language_model: Json) -> None:
    supervised["metric"] |= {"lower": -1.0, "upper": 1.0}
    supervised["scores"]["dev"]["accuracy"] = -0.2
    supervised["training"]["curve"][0]["dev"]["accuracy"] = -0.2
    assert read(supervised).score == -0.2  # type: ignore[union-attr]
    language_model["scores"]["dev"]["perplexity"] = 1e9
    assert read(language_model).score == 1e9  # type: ignore[union-attr]
    language_model["scores"]["dev"]["perplexity"] = 0.5
    assert "must lie in [1.0, None]" in refused(language_model)


@pytest.mark.parametrize("place", ["training.curve.0.dev", "language_model.before"])
def test_each_place_with_scores_has_those_of_the_metric(language_model: Json, place: str) -> None:
    scores = {
        "training.curve.0.dev": language_model["training"]["curve"][0]["dev"],
        "language_model.before": language_model["language_model"]["before"],
    }[place]
    del scores["perplexity"]
    assert f"x.json: {place}.perplexity is missing" in refused(language_model)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "null",
        "[" * 100_000,
        '{"schema": 3, "config": {"x": NaN}}',
        '{"schema": 3, "x": "\\ud800"}',
        '{"schema": 3, "config": ' + '{"a":' * 5000 + "1" + "}" * 5001,
    ],
)
def test_a_file_that_is_not_a_row_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match=r"^x\.json: ") as error:
        from_text(text, "x.json")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("section", "value", "sentence"),
    [
        ("trainer", "x", "config.trainer must be a section, found 'x'"),
        ("elmo", {"placement": "input", "lambda": "x"}, "config.elmo.lambda cannot be 'x'"),
        ("words", {"path": ["x"]}, "config.words.path cannot be ['x']"),
        ("elmo", {"placement": "input"}, "config.elmo.lambda is missing"),
        ("bilm", {}, "config.bilm.name is missing"),
    ],
)
def test_the_configuration_must_have_what_tables_read(
    supervised: Json, section: str, value: Any, sentence: str
) -> None:
    supervised["config"][section] = value
    assert sentence in refused(supervised)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(UserError, match="larger than 67,108,864 bytes"):
        read_row(path)


def test_a_row_lies_in_the_file_of_its_name(supervised: Json, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(supervised))
    with pytest.raises(UserError, match="run_id must be the file's name"):
        read_row(path)


def test_a_failed_run_has_no_finished_row(supervised: Json, failed: Json, tmp_path: Path) -> None:
    path = tmp_path / f"{supervised['run_id']}.json"
    assert finished_row(path) is None
    path.write_text(json.dumps(failed))
    assert finished_row(path) is None
    assert read_row(path) == read(failed)
    path.write_text(json.dumps(supervised))
    assert finished_row(path) == read(supervised)
