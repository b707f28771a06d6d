"""What can change a score keeps runs apart; what cannot does not."""

import copy
from typing import Any

import pytest

from elmo_tasks.config.identity import paths_without_effect, relevant, short_digest
from elmo_tasks.rows.settings import flat

CONFIG: dict[str, Any] = {
    "task": {"name": "snli", "files": {"train": "a"}, "hub": {"id": "x"}, "model": {"hidden": 3}},
    "data": {"name": "local", "root": "A", "fraction": 1.0},
    "scale": {"name": "cpu"},
    "trainer": {"max_epochs": 3, "threads": 1, "progress": False, "val_check_interval": None},
    "elmo": {"placement": "both", "lambda": 0.1},
    "bilm": {"name": "mini", "options": {}, "path": None, "store": {"dir": "x", "dtype": "float16"}},
    "words": {"name": "glove"},
    "logger": {"name": "csv"},
    "seed": 1,
}

KNOWN = [path for path in sorted(paths_without_effect()) if path.split(".")[1] in CONFIG[path.split(".")[0]]]


def changed(path: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(CONFIG)
    part = config
    *folders, key = path.split(".")
    for name in folders:
        part = part[name]
    part[key] = value
    return config


@pytest.mark.parametrize("path", [*KNOWN, "seed"])
def test_what_cannot_change_a_score_is_left_out(path: str) -> None:
    assert relevant(changed(path, "other"), "supervised") == relevant(CONFIG, "supervised")


@pytest.mark.parametrize(
    "path",
    [
        "trainer.val_check_interval",
        "trainer.max_epochs",
        "trainer.new",
        "data.fraction",
        "elmo.lambda",
        "bilm.name",
        "bilm.store.dtype",
        "task.model.hidden",
        "words.name",
        "scale.name",
    ],
)
def test_everything_else_keeps_runs_apart(path: str) -> None:
    assert relevant(changed(path, 7), "supervised") != relevant(CONFIG, "supervised")


@pytest.mark.parametrize(
    ("kind", "place"), [("supervised", ["reader"]), ("language_model", ["lm", "source", "reader"])]
)
def test_a_readers_key_that_is_not_set_is_as_one_that_is_not_there(kind: Any, place: list[str]) -> None:
    def with_reader(reader: dict[str, Any]) -> dict[str, Any]:
        for name in reversed(place[1:]):
            reader = {name: reader}
        return relevant(changed(f"task.{place[0]}", reader), kind)

    old, new = {"_target_": "x", "column": 1}, {"_target_": "x", "column": 1, "tag_column": None}
    assert with_reader(new) == with_reader(old)
    assert with_reader(new | {"tag_column": 2}) != with_reader(old)
    assert new["tag_column"] is None


def test_what_the_store_keeps_counts_where_it_changes_the_layers() -> None:
    """From a token layer that was rounded to 16 bits the LSTMs compute other layers than from the exact one."""
    stores = [{"keep": keep, "dtype": dtype} for keep in ("layers", "tokens") for dtype in ("float16", "float32")]
    settings = [relevant(changed("bilm.store", store), "supervised") for store in stores]
    assert settings[1] == settings[3]
    assert len({short_digest(one) for one in settings}) == 3
    assert settings[0] == relevant(CONFIG, "supervised")  # the default has the name that it always had


def test_a_baseline_has_no_bilm_and_no_lambda() -> None:
    baseline = changed("elmo.placement", "none")
    other = copy.deepcopy(baseline)
    other["elmo"]["lambda"], other["bilm"]["name"] = 1, "original"
    assert relevant(baseline, "supervised") == relevant(other, "supervised")
    assert relevant(baseline, "supervised") != relevant(CONFIG, "supervised")


def test_a_probe_reads_no_word_vectors_and_no_trainer() -> None:
    assert relevant(changed("words.name", "x"), "sense_probe") == relevant(CONFIG, "sense_probe")
    assert "trainer" not in relevant(CONFIG, "sense_probe")
    assert "elmo" not in relevant(CONFIG, "language_model")


def test_a_nested_mapping_by_dotted_key() -> None:
    assert flat({"a": {"b": 1, "c": {}}, "d": [2]}) == {"a.b": 1, "a.c": {}, "d": [2]}
