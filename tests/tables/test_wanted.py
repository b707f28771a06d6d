from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config.identity import RunDigests, run_id, setting_key
from elmo_tasks.errors import UserError
from elmo_tasks.rows.collection import Rows, read_rows
from elmo_tasks.rows.io import read_row
from elmo_tasks.tables.wanted import compose_wanted, other_keys, override

REPO = Path(__file__).parents[2]
NER = ("task=ner", "data=local")


def test_every_row_of_the_repository_can_be_read() -> None:
    folder = REPO / "experiments" / "rows"
    rows = read_rows([folder])
    assert rows.left_out == rows.failed == []
    assert sum(map(len, rows.by_key.values())) == len(rows.finished)
    assert len(rows.finished) == len(list(folder.glob("*.json"))) > 0


def name(*overrides: str) -> str:
    return run_id(compose_wanted(overrides).config, compose_wanted(overrides).kind, RunDigests("d"))


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
    assert compose_wanted(("task=lm", other)).key != compose_wanted(("task=lm",)).key


def test_a_default_that_is_written_out_makes_no_other_run() -> None:
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
        ("words.path=file",),
        ("trainer.max_epochs=3",),
        ("trainer.max_steps=3",),
        ("trainer.precision=bf16-mixed",),
        ("trainer.val_check_interval=5",),
        ("trainer.limit_val_batches=1",),
        ("trainer.limit_val_batches=0.5",),
        ("task.training.schedule=linear",),
        ("task.training.batch_size=7",),
        ("task.model.dropout=0.1",),
    ],
)
def test_whatever_can_change_a_score_is_another_setting(other: tuple[str, ...]) -> None:
    assert compose_wanted((*NER, *other)).key != compose_wanted(NER).key


@pytest.mark.parametrize(
    "other",
    [
        ("seed=2",),
        ("test=true",),
        ("elmo.lambda=1e-1",),
        ("logger=none",),
        ("trainer.threads=1",),
        ("data.root=X",),
        ("task.files.test=other",),  # what is read has a digest
        ("task.hub.id=other",),
    ],
)
def test_what_cannot_change_a_score_is_the_same_setting(other: tuple[str, ...]) -> None:
    assert compose_wanted((*NER, *other)).key == compose_wanted(NER).key


def test_own_word_vectors_are_one_setting_wherever_they_are() -> None:
    assert compose_wanted((*NER, "words.path=a")).key == compose_wanted((*NER, "words.path=b/a")).key


def test_a_bilm_that_started_from_other_weights_is_another_setting() -> None:
    lm = ("task=lm", "data=local", "task.lm.text=ner")
    starts = ((), ("task.lm.init=mini",), ("task.lm.init=small",), ("task.lm.init=runs/lm",))
    assert len({compose_wanted((*lm, *start)).key for start in starts}) == len(starts)
    assert compose_wanted((*lm, "task.lm.init=runs/lm")).key == compose_wanted((*lm, "task.lm.init=/elsewhere/lm")).key


def test_files_of_other_names_are_other_runs() -> None:
    others = ("data.root=X", "task.files.train=a", "bilm.path=a", "bilm.path=b", "words.path=a", "words.path=b")
    keys = [compose_wanted((*NER, *other)).run_key for other in ((), *((one,) for one in others))]
    assert len({*keys}) == len(keys)
    none = (*NER, "elmo.placement=none")
    assert compose_wanted((*none, "bilm.path=a", "seed=2")).run_key == compose_wanted(none).run_key


def test_a_baseline_does_not_depend_on_elmo_and_the_bilm() -> None:
    none = (*NER, "elmo.placement=none")
    assert compose_wanted((*none, "elmo.lambda=1", "bilm=small", "elmo.gamma=one")).key == compose_wanted(none).key


@pytest.mark.parametrize("task", ["wsd", "lm"])
def test_seeds_of_a_probe_and_of_a_bilm_are_one_setting(task: str) -> None:
    keys = {compose_wanted((f"task={task}", "data=local", f"seed={seed}")).key for seed in (1, 2)}
    assert len(keys) == 1


def test_a_row_is_of_the_setting_that_it_was_run_with(write: Any) -> None:
    for overrides in (NER, (*NER, "elmo.placement=none"), ("task=wsd", "data=local")):
        assert setting_key((row := read_row(write(*overrides))).config, row.kind) == compose_wanted(overrides).key


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ((), {}),
        (("bilm=small",), {}),
        (("bilm=small", "bilm.options.lstm.dim=64"), {"bilm.options.lstm.dim": 64}),
        (("bilm.name=mine", "bilm.options.lstm.dim=64"), {"bilm.options.lstm.dim": 64}),
        (("bilm=small", "elmo.gamma=one"), {"elmo.gamma": "one"}),
        (("task.training.grad_norm=5", "trainer.limit_val_batches=1.0"), {}),  # 5 is 5.0
    ],
)
def test_other_keys_are_those_that_neither_the_task_nor_its_bilm_sets(
    overrides: tuple[str, ...], expected: dict[str, Any], write: Any
) -> None:
    rows = Rows((), [read_row(write(*NER, *overrides))], [], [])
    assert other_keys(rows.settings[0]) == expected


@pytest.mark.parametrize(
    "value", ["rows", "a b/c", "결과/rows", "rows(1)", "a, b", "it's\\'", "x=1", "[a]", "1", "a\\", "\\'"]
)
def test_any_name_of_a_folder_is_an_override(value: str) -> None:
    assert compose_wanted(("task=ner", override("results.dir", value))).config["results"]["dir"] == value
    assert override("results.dir", "outputs/rows") == "results.dir=outputs/rows"


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (("task=nothing",), "task=nothing: unknown choice; expected one of"),
        (("task=???",), r"You must specify .task., e.g, task=<OPTION>; there are coref, lm, ner, "),
        (("elmo.nothing=1",), "unknown key 'elmo.nothing'"),
        (("lambda=1",), "unknown key 'lambda'; expected one of words, bilm, .*; elmo.lambda may be meant"),
        (("elmo.gamma=two",), "elmo.gamma must be one of learned, one, found 'two'"),
    ],
)
def test_a_wrong_override_is_named(overrides: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        compose_wanted(("data=local", *overrides))
