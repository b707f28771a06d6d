import copy
import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.results import fingerprint
from elmo_tasks.tables.rows import read_rows
from elmo_tasks.tables.settings import identity, setting
from elmo_tasks.train import identify

REPO = Path(__file__).parents[2]
ROWS = [json.loads(path.read_text("utf-8")) for path in sorted((REPO / "experiments" / "rows").glob("*.json"))]
NER = ("task=ner", "data=local")


def asked(row: dict[str, Any]) -> tuple[str, ...]:
    """The overrides that a row of the repository was made with."""
    config, task = row["config"], row["config"]["task"]
    overrides = [f"data={config['data']['name']}", f"task={task['name']}", f"words={config['words']['name']}"]
    overrides.append(f"data.fraction={config['data']['fraction']:g}")
    if "lm" in task:
        return (*overrides, f"task.lm.text={task['lm']['text']}", f"task.lm.init={task['lm']['init']}")
    overrides.append(f"elmo.placement={config['elmo']['placement']}")
    if config["elmo"]["placement"] != "none":
        overrides += [f"elmo.{key}={config['elmo'][key]}" for key in ("mix", "lambda", "dropout", "layer_norm")]
        overrides += [f"bilm.{key}={config['bilm'][key]}" for key in ("name", "path", "state") if config["bilm"][key]]
    return tuple(overrides)


def test_every_row_of_the_repository_is_of_a_setting_of_today() -> None:
    rows = read_rows([REPO / "experiments" / "rows"])
    assert rows.left_out == []
    assert {setting(asked(row)).key for row in ROWS} == set(rows.by_setting)
    assert sum(map(len, rows.by_setting.values())) == len(ROWS) == 210


def test_runs_of_today_s_configuration_keep_the_names_that_they_had() -> None:
    same = 0
    for row in ROWS:
        config = copy.deepcopy(setting(asked(row)).config)
        if "ensemble" in row or "schedule" not in row["config"]["task"].get("training", {}):
            continue  # rows older than some keys have had other names since then
        assert config["elmo"].pop("gamma") == "learned"
        config["elmo"]["gamma"] = "learned"
        assert row["run_id"] == identify(
            config | {"seed": row["seed"]}, row["data"]["digest"], row["bilm"], row.get("start")
        )
        same += 1
    assert same == 189


def name(*overrides: str) -> str:
    return identify(setting(overrides).config, "", None)


@pytest.mark.parametrize(
    "other",
    [
        "bilm.options.lstm.dim=64",
        "bilm.options.char_cnn.n_highway=2",
        "trainer.val_check_interval=5",
        "trainer.limit_val_batches=1",
    ],
)
def test_a_bilm_of_another_size_or_chosen_by_other_scores_is_another_run(other: str) -> None:
    assert name("task=lm", other) != name("task=lm")
    assert setting(("task=lm", other)).key != setting(("task=lm",)).key


def test_what_every_run_has_said_so_far_is_no_other_run_when_it_is_said_aloud() -> None:
    assert name("task=lm", "trainer.val_check_interval=null", "trainer.limit_val_batches=1.0") == name("task=lm")


@pytest.mark.parametrize(
    "other",
    [
        ("scale=paper",),
        ("data.fraction=0.5",),
        ("elmo.mix=last",),
        ("elmo.lambda=0.2",),
        ("elmo.gamma=one",),
        ("elmo.placement=both",),
        ("elmo.placement=none",),
        ("elmo.layer_norm=true",),
        ("elmo.dropout=0.5",),
        ("bilm=small",),
        ("bilm.path=folder",),
        ("bilm.state=carry",),
        ("bilm.precision=bfloat16",),
        ("bilm.store.dtype=float32",),
        ("words=random",),
        ("trainer.max_epochs=3",),
        ("trainer.max_steps=3",),
        ("trainer.precision=bf16-mixed",),
        ("trainer.val_check_interval=5",),
        ("trainer.limit_val_batches=1",),
        ("trainer.limit_val_batches=0.5",),
        ("task.training.schedule=linear",),
        ("task.training.batch_size=7",),
        ("task.model.dropout=0.1",),
        ("task.files.train=other",),
    ],
)
def test_whatever_can_change_a_score_is_another_setting(other: tuple[str, ...]) -> None:
    assert setting((*NER, *other)).key != setting(NER).key


@pytest.mark.parametrize(
    "other",
    [("seed=2",), ("test=true",), ("elmo.lambda=1e-1",), ("logger=none",), ("trainer.threads=1",), ("data.root=X",)],
)
def test_what_cannot_change_a_score_is_the_same_setting(other: tuple[str, ...]) -> None:
    assert setting((*NER, *other)).key == setting(NER).key


def test_a_baseline_is_the_same_whatever_elmo_and_the_bilm_say() -> None:
    none = (*NER, "elmo.placement=none")
    assert setting((*none, "elmo.lambda=1", "bilm=small", "elmo.gamma=one")).key == setting(none).key


def test_rows_older_than_a_key_are_of_the_setting_that_went_without_saying() -> None:
    config = copy.deepcopy(setting(NER).config)
    for key in ("schedule", "average", "batch_tokens"):
        del config["task"]["training"][key]
    del config["elmo"]["gamma"]
    config["task"]["training"]["decay"] = False
    assert fingerprint(identity(config)) == setting(NER).key
    config["task"]["training"]["decay"] = True
    assert fingerprint(identity(config)) == setting((*NER, "task.training.schedule=linear")).key


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (("task=nothing",), "task=nothing: no such choice; there are"),
        (("elmo.nothing=1",), "there is no key 'elmo.nothing'"),
        (("elmo.gamma=two",), "elmo.gamma must be one of learned, one, found 'two'"),
    ],
)
def test_a_wrong_override_is_named(overrides: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        setting(("data=local", *overrides))
