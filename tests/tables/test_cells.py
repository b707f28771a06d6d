import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks.build import build_bilm
from elmo_tasks.errors import UserError
from elmo_tasks.tables.cells import Cell, find_cell
from elmo_tasks.tables.rows import read_rows
from elmo_tasks.tables.settings import setting

NER = "task=ner"


def cell(tmp_path: Path, *overrides: str, split: str = "dev", n: int = 3, ensemble: bool = False) -> Cell:
    of_cell = setting(("data=local", *(overrides or (NER,))))
    rows = read_rows([tmp_path / "rows"])
    return find_cell(rows, of_cell, split=split, seeds=tuple(range(1, n + 1)), ensemble=ensemble)


def test_a_cell_is_the_mean_and_sample_deviation_of_its_seeds(tmp_path: Path, write: Any) -> None:
    scores = {1: 80.0, 2: 83.5, 3: 81.25}
    for seed, score in scores.items():
        write(NER, seed=seed, dev=score, test=score - 10)
    write(NER, seed=4, dev=0.0, test=0.0)  # was not asked for
    found = cell(tmp_path)
    assert found.values == scores
    assert found.mean == pytest.approx(np.mean(list(scores.values())))
    assert found.sd == pytest.approx(np.std(list(scores.values()), ddof=1))
    assert (found.n, found.missing, found.marks) == (3, (), ())
    assert found.run_ids == ("ner-0-s1", "ner-1-s2", "ner-2-s3")
    assert cell(tmp_path, split="test").values == {seed: score - 10 for seed, score in scores.items()}


@pytest.mark.parametrize("other", ["scale=paper", "data.fraction=0.5", "bilm=small", "elmo.mix=last", "elmo.lambda=1"])
def test_a_cell_has_no_row_of_another_setting(tmp_path: Path, write: Any, other: str) -> None:
    write(NER, seed=1, dev=80.0)
    write(NER, other, seed=2, dev=10.0)
    assert cell(tmp_path).values == {1: 80.0}
    assert cell(tmp_path, NER, other).values == {2: 10.0}


def test_a_row_without_a_test_score_is_missing_on_test(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, dev=80.0, test=70.0)
    write(NER, seed=2, dev=81.0)
    found = cell(tmp_path, split="test", n=2)
    assert (found.values, found.missing) == ({1: 70.0}, (2,))


def test_of_two_rows_for_a_seed_the_newer_counts_and_is_marked(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, dev=80.0, created="2026-02-01T00:00:00+00:00")
    write(NER, seed=1, dev=10.0, created="2026-01-01T00:00:00+00:00")
    found = cell(tmp_path, n=1)
    assert (found.values, found.marks) == ({1: 80.0}, ("e",))


def test_a_row_that_lies_in_two_folders_counts_once(tmp_path: Path, write: Any) -> None:
    path = write(NER, seed=1, dev=80.0)
    (tmp_path / "more").mkdir()
    shutil.copy(path, tmp_path / "more")
    rows = read_rows([tmp_path / "rows", tmp_path / "more"])
    found = find_cell(rows, setting(("data=local", NER)), split="dev", seeds=(1,))
    assert (found.values, found.marks) == ({1: 80.0}, ())


@pytest.mark.parametrize("what", ["data", "bilm"])
def test_rows_of_other_data_or_weights_are_not_averaged(tmp_path: Path, write: Any, what: str) -> None:
    old = json.loads(write(NER, seed=1, dev=10.0).read_text())
    write(NER, seed=2, dev=10.0)
    write(NER, seed=2, dev=82.0, **{what: old[what] | {"digest": "other"}})
    found = cell(tmp_path, n=2)
    assert (found.values, found.missing, found.marks) == ({2: 82.0}, (1,), ("a", "f"))


def test_data_at_hand_decide_which_rows_count(tmp_path: Path, write: Any) -> None:
    from elmo_tasks.data.source import Files

    sample = Path(__file__).parents[2] / "elmo_tasks" / "bundled" / "sample"
    data = json.loads(write(NER, seed=1, dev=10.0).read_text())["data"]
    digest = Files(str(sample), setting(("data=local", NER)).config["task"]["files"]).digest
    write(NER, seed=1, dev=80.0, data=data | {"digest": digest}, created="2000-01-01T00:00:00+00:00")
    assert cell(tmp_path, n=1).values == {1: 10.0}
    assert cell(tmp_path, NER, f"data.root={sample}", n=1).values == {1: 80.0}
    with pytest.raises(UserError, match=r"^data\.root=nowhere: no such folder"):
        cell(tmp_path, NER, "data.root=nowhere")


def test_weights_at_hand_decide_which_rows_count(tmp_path: Path, write: Any, tiny_bilm: Any) -> None:
    tiny_bilm.save(tmp_path / "bilm")
    named = f"bilm.path={tmp_path / 'bilm'}"
    bilm = json.loads(write(NER, named, seed=1, dev=10.0).read_text())["bilm"]
    assert cell(tmp_path, NER, named, n=1).values == {}
    write(NER, named, seed=1, dev=80.0, bilm=bilm | {"digest": tiny_bilm.digest})
    assert cell(tmp_path, NER, named, n=1).values == {1: 80.0}
    assert cell(tmp_path, NER, n=1).values == {}  # that is the bundled one


def test_a_precision_is_part_of_the_weights_at_hand(tmp_path: Path, write: Any, tiny_bilm: Any) -> None:
    tiny_bilm.save(tmp_path / "bilm")
    named = (NER, f"bilm.path={tmp_path / 'bilm'}", "bilm.precision=bfloat16")
    tiny_bilm.precision = "bfloat16"
    bilm = {"name": "mini", "digest": tiny_bilm.digest, "state": "reset", "dtype": "float16", "warm": None}
    write(*named, seed=1, dev=80.0, bilm=bilm)
    assert cell(tmp_path, *named, n=1).values == {1: 80.0}


def test_another_encoder_at_hand_decides_which_rows_count_too(
    tmp_path: Path, write: Any, cove_files: tuple[Path, Path], hf_folder: Any
) -> None:
    weights, words = cove_files
    sizes = (f"bilm.options.words.path={words}", "bilm.options.words.dim=5", "bilm.options.lstm.dim=5")
    cove = (NER, "bilm=cove", f"bilm.path={weights}", *sizes)
    bert = (NER, "bilm=hf", f"bilm.path={hf_folder('bert')}")
    for named in (cove, bert):
        encoder = build_bilm(setting(("data=local", *named)).config)
        assert encoder is not None
        bilm = {"name": named[1][5:], "digest": encoder.digest, "state": "reset", "dtype": "float16", "warm": None}
        write(*named, seed=1, dev=80.0, bilm=bilm)
        write(*named, seed=1, dev=10.0, bilm=bilm | {"digest": "other"})
        assert cell(tmp_path, *named, n=1).values == {1: 80.0}


def test_marks_tell_what_a_reader_must_know(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1)
    write(NER, seed=2, commit="badcab", dirty=True)
    data = {"name": "local", "digest": "d1", "train": {"original": 10, "used": 9}, "dev": {"original": 5, "used": 5}}
    write(NER, seed=3, data=data)
    assert cell(tmp_path, n=4).marks == ("a", "b", "c", "d")
    assert cell(tmp_path, n=1).marks == ()
    assert cell(tmp_path, n=2).marks == ("b", "c")


def test_a_tree_of_which_nothing_is_known_is_marked_as_a_changed_one(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, commit=None, dirty=None)
    assert cell(tmp_path, n=1).marks == ("c",)


def test_rows_of_two_metrics_make_no_cell(tmp_path: Path, write: Any) -> None:
    ours = (NER, "task.metric._target_=ours.Score")  # a metric that is not this project's
    write(*ours, seed=1, dev=80.0)
    curve = [{"epoch": 1, "step": 10, "dev": {"accuracy": 90.0}}]
    write(*ours, seed=2, metric="accuracy", scores={"dev": {"accuracy": 90.0}}, curve=curve)
    with pytest.raises(UserError, match=r"must have one metric, found ner-0-s1 \(f1\), ner-1-s2 \(accuracy\)"):
        cell(tmp_path, *ours)


def test_an_ensemble_is_one_row_of_just_these_members(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2):
        write(NER, seed=seed, dev=80.0)
    write(NER, seed=None, dev=85.0, ensemble={"seeds": [2, 1], "members": []})
    write(NER, seed=1, dev=99.0, ensemble={"seeds": [1, 2, 3], "members": []})
    assert cell(tmp_path, n=2, ensemble=True).values == {0: 85.0}
    assert cell(tmp_path, n=2).values == {1: 80.0, 2: 80.0}
    assert cell(tmp_path, n=4, ensemble=True).missing == (0,)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"schema": 0}, "not a row of schema 1"),
        ({"status": "failed", "error": "Boom"}, r"a run that failed \(Boom\)"),
        ({"scores": {}}, "scores.dev is missing"),
        ({"scores": {"dev": {"accuracy": 1.0}}}, "scores.dev.f1 is missing"),
        ({"scores": {"dev": {"f1": float("nan")}}}, "scores.dev.f1 must be a number from 0 to 100, found nan"),
        ({"scores": {"dev": {"f1": "80"}}}, "scores.dev.f1 must be a number from 0 to 100, found '80'"),
        ({"metric": None}, "metric must be a printable name, found None"),
        ({"config": {}}, "config.task is missing"),
        ({"config": {"task": 3}}, "config.task must be a mapping, found 3"),
        ({"data": {}}, "data.name is missing"),
        ({"bilm": None}, "bilm.name is missing"),
        ({"seed": "one"}, "seed must be a whole number, 0 or more, found 'one'"),
        ({"seed": True}, "seed must be a whole number, 0 or more, found True"),
        ({"ensemble": {}, "seed": None}, "ensemble.seeds is missing"),
        ({"metric": "accuracy", "scores": {"dev": {"accuracy": 10.0}}}, "metric must be f1, that of the row's task"),
        ({"dev": 700.0, "created": "2030-01-01T00:00:00+00:00"}, "scores.dev.f1 must be a number from 0 to 100"),
        ({"created": "yesterday"}, "created must be an ISO time with its zone, found 'yesterday'"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_and_left_out(
    tmp_path: Path, write: Any, broken: dict[str, Any], why: str
) -> None:
    write(NER, seed=1, dev=80.0)
    write(NER, **({"seed": 2, "dev": 10.0, "run_id": "bad"} | broken))
    rows = read_rows([tmp_path / "rows"])
    assert cell(tmp_path).values == {1: 80.0}
    (sentence,) = rows.left_out
    assert "bad.json: " in sentence
    assert re.search(why, sentence)
    assert "left out: 1 of the files" in rows.notes()[1]


def test_a_row_whose_configuration_lacks_a_part_is_left_out(tmp_path: Path, write: Any) -> None:
    path = write(NER, seed=1)
    row = json.loads(path.read_text())
    del row["config"]["data"]
    path.write_text(json.dumps(row))
    (sentence,) = read_rows([tmp_path / "rows"]).left_out
    assert "a part that a table needs is not there (KeyError: 'data')" in sentence


def test_a_file_that_is_no_json_is_named_and_the_first_of_many_are_shown(tmp_path: Path, write: Any) -> None:
    for k in range(7):
        (tmp_path / "rows" / f"torn{k}.json").write_text('{"schema": 1, ')
    write(NER, seed=1, dev=80.0)
    rows = read_rows([tmp_path / "rows"])
    assert len(rows.left_out) == 7
    assert "left out: 7 of the files" in rows.notes()[1]
    assert "torn0.json: not a readable row" in rows.notes()[1]
    assert "and 2 more" in rows.notes()[1]


def test_a_folder_that_is_not_there_has_no_rows_and_says_so(tmp_path: Path) -> None:
    rows = read_rows([tmp_path / "nowhere"])
    assert rows.by_setting == {}
    assert rows.notes() == [f"rows: 0 in {tmp_path / 'nowhere'} (not there)"]
