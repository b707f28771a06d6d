import json
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks.assembly import build_bilm, build_sense_data
from elmo_tasks.assembly.data import build_text
from elmo_tasks.errors import UserError
from elmo_tasks.files import digest_files
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.rows.schema import FailedRow
from elmo_tasks.tables import digests
from elmo_tasks.tables.collect import Cell, find_cell
from elmo_tasks.tables.wanted import compose_wanted

NER = "task=ner"
SAMPLE = Path(__file__).parents[2] / "elmo_tasks" / "bundled" / "sample"


def cell(tmp_path: Path, *overrides: str, split: str = "dev", n: int = 3, ensemble: bool = False) -> Cell:
    asked = compose_wanted(("data=local", *(overrides or (NER,))))
    rows = read_rows([tmp_path / "rows"])
    return find_cell(rows, asked, split=split, seeds=tuple(range(1, n + 1)), ensemble=ensemble)


def test_a_cell_is_the_mean_and_sample_deviation_of_its_seeds(tmp_path: Path, write: Any) -> None:
    scores = {1: 80.0, 2: 83.5, 3: 81.25}
    for seed, score in scores.items():
        write(NER, seed=seed, dev=score, test=score - 10)
    write(NER, seed=4, dev=0.0, test=0.0)  # was not asked for
    found = cell(tmp_path)
    assert found.values == scores
    assert found.mean == pytest.approx(np.mean(list(scores.values())))
    assert (len(found.rows), found.missing, found.marks) == (3, (), ())
    assert [row.run_id for row in found.rows.values()] == ["ner-0-s1", "ner-1-s2", "ner-2-s3"]
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
    found = find_cell(rows, compose_wanted(("data=local", NER)), split="dev", seeds=(1,))
    assert (found.values, found.marks) == ({1: 80.0}, ())


@pytest.mark.parametrize("folders", [("rows", "more"), ("more", "rows")])
def test_a_run_that_was_made_again_without_test_scores_does_not_hide_those_that_there_are(
    tmp_path: Path, write: Any, folders: tuple[str, str]
) -> None:
    path = write(NER, seed=1, dev=80.0, test=70.0)
    row = json.loads(path.read_text())
    (tmp_path / "more").mkdir()
    again = tmp_path / "more" / path.name

    def read(**changes: Any) -> Any:
        again.write_text(json.dumps(row | {"created": "2030-01-01T00:00:00+00:00"} | changes))
        return read_rows([tmp_path / folder for folder in folders])

    rows = read(scores={"dev": row["scores"]["dev"]})
    assert [*rows.finished[0].scores] == ["dev", "test"]
    assert rows.left_out == []
    rows = read(scores={"dev": {name: 10.0 for name in row["scores"]["dev"]}})  # other scores: the newer row counts
    assert [*rows.finished[0].scores] == ["dev"]
    assert rows.left_out == [f"{path}: the same run as {again}, which is newer"]


@pytest.mark.parametrize("folders", [("rows", "more"), ("more", "rows")])
def test_a_crash_of_a_run_that_has_finished_elsewhere_does_not_hide_its_score(
    tmp_path: Path, write: Any, folders: tuple[str, str]
) -> None:
    path = write(NER, seed=1, dev=80.0)
    header = {field.name for field in fields(FailedRow)} - {"error", "status"}
    row = {key: value for key, value in json.loads(path.read_text()).items() if key in header}
    row |= {"status": "failed", "error": "Boom", "created": "2030-01-01T00:00:00+00:00"}
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / path.name).write_text(json.dumps(row))
    rows = read_rows([tmp_path / folder for folder in folders])
    assert find_cell(rows, compose_wanted(("data=local", NER)), split="dev", seeds=(1,)).values == {1: 80.0}
    assert rows.failed == []
    assert rows.left_out == [f"{tmp_path / 'more' / path.name}: the same run as {path}, which has finished"]


def test_rows_of_other_weights_are_not_averaged_and_the_newest_count(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, dev=10.0)
    write(NER, seed=2, dev=10.0)
    write(NER, seed=2, dev=82.0, bilm={"digest": "other"})
    found = cell(tmp_path, n=2)
    assert (found.values, found.missing, found.marks) == ({2: 82.0}, (1,), ("a", "f"))


def test_rows_of_other_data_are_not_averaged_and_those_with_the_most_seeds_count(tmp_path: Path, write: Any) -> None:
    """A short run on a file of one's own does not take the place of a finished cell."""
    write(NER, seed=1, dev=10.0)
    write(NER, seed=2, dev=10.0)
    write(NER, seed=2, dev=82.0, data={"digest": "other"})
    found = cell(tmp_path, n=2)
    assert (found.values, found.missing, found.marks) == ({1: 10.0, 2: 10.0}, (), ("f",))
    write(NER, seed=1, dev=80.0, data={"digest": "other"})
    assert cell(tmp_path, n=2).values == {1: 80.0, 2: 82.0}  # as many: the newest


def test_the_data_files_that_are_there_decide_which_rows_count(tmp_path: Path, write: Any) -> None:
    from elmo_tasks.data.ner import NerReader
    from elmo_tasks.data.source import Files

    write(NER, seed=1, dev=10.0)
    digest = Files(str(SAMPLE), compose_wanted(("data=local", NER)).config["task"]["files"], NerReader()).digest
    write(NER, seed=1, dev=80.0, data={"digest": digest}, created="2000-01-01T00:00:00+00:00")
    assert cell(tmp_path, n=1).values == {1: 10.0}
    assert cell(tmp_path, NER, f"data.root={SAMPLE}", n=1).values == {1: 80.0}
    with pytest.raises(UserError, match=r"^data\.root=nowhere: no such folder"):
        cell(tmp_path, NER, "data.root=nowhere")


@pytest.mark.parametrize("overrides", [("task=wsd", "elmo.mix=last"), ("task=lm",), ("task=lm", "task.lm.text=ner")])
def test_the_text_of_a_probe_or_a_bilm_that_is_there_decides_too(
    tmp_path: Path, write: Any, overrides: tuple[str, ...]
) -> None:
    config = compose_wanted(("data=local", *overrides, f"data.root={SAMPLE}")).config
    digest = (build_sense_data(config) if overrides[0] == "task=wsd" else build_text(config)).digest
    tuned = None if overrides[0] == "task=wsd" else (60.0, 50.0, "bilm", "e1")
    write(*overrides, seed=1, dev=50.0, tuned=tuned, data={"digest": "other"})
    assert cell(tmp_path, *overrides, n=1).rows.keys() == {1}
    found = cell(tmp_path, *overrides, f"data.root={SAMPLE}", n=1)
    assert (found.values, found.marks) == ({}, ("f",))
    write(*overrides, seed=1, dev=50.0, tuned=tuned, data={"digest": digest})
    assert cell(tmp_path, *overrides, f"data.root={SAMPLE}", n=1).values == {1: 50.0}
    with pytest.raises(UserError, match=r"nowhere.*: no "):
        cell(tmp_path, *overrides, "data.root=nowhere")


def test_the_weights_that_are_there_decide_which_rows_count(tmp_path: Path, write: Any, tiny_bilm: Any) -> None:
    tiny_bilm.save(tmp_path / "bilm")
    named = f"bilm.path={tmp_path / 'bilm'}"
    write(NER, named, seed=1, dev=10.0)
    assert cell(tmp_path, NER, named, n=1).values == {}
    write(NER, named, seed=1, dev=80.0, bilm={"digest": tiny_bilm.digest})
    assert cell(tmp_path, NER, named, n=1).values == {1: 80.0}
    assert cell(tmp_path, NER, n=1).values == {}  # that is the bundled one


def test_the_word_vectors_that_are_there_decide_which_rows_count_wherever_they_were(tmp_path: Path, write: Any) -> None:
    here, gone = tmp_path / "here.txt", tmp_path / "gone.txt"
    here.write_text("the 1 2\n")
    own = {"word_vectors": digest_files([here])}
    write(NER, f"words.path={gone}", seed=1, dev=80.0, data=own)
    write(NER, f"words.path={here}", seed=2, dev=82.0, data=own)
    write(NER, f"words.path={gone}", seed=2, dev=10.0, data={"word_vectors": "0" * 16})
    found = cell(tmp_path, NER, f"words.path={here}", n=2)
    assert (found.values, found.marks) == ({1: 80.0, 2: 82.0}, ())
    assert cell(tmp_path, NER, f"words.path={gone}", n=2).values == {2: 10.0}  # nothing there: the newest of that path
    assert cell(tmp_path, NER, n=2).values == {}  # those of the package
    here.write_text("the 1 3\n")
    digests._FOUND.clear()
    found = cell(tmp_path, NER, f"words.path={here}", n=2)
    assert (found.values, found.marks) == ({}, ("f",))


def test_a_precision_is_part_of_the_weights_that_are_there(tmp_path: Path, write: Any, tiny_bilm: Any) -> None:
    tiny_bilm.save(tmp_path / "bilm")
    named = (NER, f"bilm.path={tmp_path / 'bilm'}", "bilm.precision=bfloat16")
    tiny_bilm.precision = "bfloat16"
    bilm = {"name": "mini", "digest": tiny_bilm.digest, "state": "reset", "dtype": "float16", "warm": None}
    write(*named, seed=1, dev=80.0, bilm=bilm)
    assert cell(tmp_path, *named, n=1).values == {1: 80.0}


def test_another_encoder_that_is_there_decides_which_rows_count_too(
    tmp_path: Path, write: Any, cove_files: tuple[Path, Path], hf_folder: Any
) -> None:
    weights, words = cove_files
    sizes = (f"bilm.options.words.path={words}", "bilm.options.words.dim=5", "bilm.options.lstm.dim=5")
    cove = (NER, "bilm=cove", f"bilm.path={weights}", *sizes)
    bert = (NER, "bilm=hf", f"bilm.path={hf_folder('bert')}")
    for named in (cove, bert):
        encoder = build_bilm(compose_wanted(("data=local", *named)).config)
        assert encoder is not None
        bilm = {"name": named[1][5:], "digest": encoder.digest, "state": "reset", "dtype": "float16", "warm": None}
        write(*named, seed=1, dev=80.0, bilm=bilm)
        write(*named, seed=1, dev=10.0, bilm=bilm | {"digest": "other"})
        assert cell(tmp_path, *named, n=1).values == {1: 80.0}


def test_marks_tell_what_a_reader_must_know(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1)
    write(NER, seed=2, commit="badcab", dirty=True)
    write(NER, seed=3, data={"items": {"train": {"original": 10, "used": 9}, "dev": {"original": 5, "used": 5}}})
    assert cell(tmp_path, n=4).marks == ("a", "b", "c", "d")
    assert cell(tmp_path, n=1).marks == ()
    assert cell(tmp_path, n=2).marks == ("b", "c")


def test_a_run_that_was_resumed_with_other_code_is_marked(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, training={"code": [{"commit": "badcab", "dirty": False}, {"commit": "c0ffee", "dirty": False}]})
    assert cell(tmp_path, n=1).marks == ("b",)
    write(NER, seed=1, training={"code": [{"commit": "c0ffee", "dirty": True}, {"commit": "c0ffee", "dirty": False}]})
    assert cell(tmp_path, n=1).marks == ("c", "e")
    write(NER, seed=1, training={"code": [{"commit": "c0ffee", "dirty": False}]})
    assert cell(tmp_path, n=1).marks == ("e",)


def test_a_working_tree_of_unknown_state_is_marked_as_changed(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, commit=None, dirty=None)
    assert cell(tmp_path, n=1).marks == ("c",)


def test_rows_of_two_metrics_make_no_cell(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, dev=80.0)
    other = json.loads(write(NER, seed=2, dev=80.0).read_text())
    other["metric"] |= {"name": "precision", "reported": ["precision"]}
    other["scores"]["dev"] = {"precision": 90.0}
    other["training"]["curve"][0]["dev"] = {"precision": 90.0}
    (tmp_path / "rows" / f"{other['run_id']}.json").write_text(json.dumps(other))
    with pytest.raises(UserError, match=r"must have one metric, found ner-0-s1 \(f1\), ner-1-s2 \(precision\)"):
        cell(tmp_path, n=2)


def test_an_ensemble_is_one_row_of_just_these_members(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2):
        write(NER, seed=seed, dev=80.0)
    write(NER, dev=85.0, members={2: "ner-1-s2", 1: "ner-0-s1"})
    write(NER, dev=99.0, members={1: "a", 2: "b", 3: "c"})
    assert cell(tmp_path, n=2, ensemble=True).values == {0: 85.0}
    assert cell(tmp_path, n=2).values == {1: 80.0, 2: 80.0}
    assert cell(tmp_path, n=4, ensemble=True).missing == (0,)


def test_an_ensemble_of_members_that_were_made_again_is_not_shown(tmp_path: Path, write: Any) -> None:
    paths = [write(NER, seed=seed, dev=80.0) for seed in (1, 2)]
    write(NER, dev=85.0, members={1: "ner-0-s1", 2: "ner-1-s2"})
    row = json.loads(paths[0].read_text())
    paths[0].write_text(json.dumps(row | {"weights": "0" * 64}))
    found = cell(tmp_path, n=2, ensemble=True)
    assert (found.values, found.missing, found.marks) == ({}, (0,), ("f",))


@pytest.mark.parametrize(("n_rising", "expected"), [(0, False), (1, False), (2, True)])
def test_a_cell_in_which_more_than_one_seed_of_five_had_not_converged_is_still_rising(
    tmp_path: Path, write: Any, n_rising: int, expected: bool
) -> None:
    for seed in range(1, 6):
        write(NER, seed=seed, training={"converged": seed > n_rising})
    write(NER, members={seed: f"ner-{seed - 1}-s{seed}" for seed in range(1, 6)})
    assert cell(tmp_path, n=5).setting.rising is expected
    together = cell(tmp_path, n=5, ensemble=True)
    assert (len(together.rows), together.setting.rising) == (
        1,
        expected,
    )  # an ensemble is as good as its members' training


def test_a_failed_run_and_a_broken_file_are_no_part_of_a_cell_and_named(tmp_path: Path, write: Any) -> None:
    row = json.loads(write(NER, seed=1, dev=80.0).read_text())
    failed = {
        key: row[key] for key in ("schema", "kind", "task", "slug", "scale", "created", "bilm", "commit", "dirty")
    }
    failed |= {key: row[key] for key in ("versions", "config")} | {"run_id": "f", "seed": 2, "status": "failed"}
    (tmp_path / "rows" / "f.json").write_text(json.dumps(failed | {"error": "Boom"}))
    (tmp_path / "rows" / "bad.json").write_text(json.dumps(row | {"seed": "one", "run_id": "bad"}))
    rows = read_rows([tmp_path / "rows"])
    assert cell(tmp_path).values == {1: 80.0}
    (sentence,) = rows.left_out
    assert sentence.endswith("bad.json: seed must be a valid integer, found 'one'")
    assert rows.notes()[1] == "failed runs: 1 (not included in any score)"
    assert "left out: 1 of the files" in rows.notes()[2]


def test_the_first_of_many_files_that_are_no_rows_are_shown(tmp_path: Path, write: Any) -> None:
    for k in range(7):
        (tmp_path / "rows" / f"torn{k}.json").write_text('{"schema": 3, ')
    write(NER, seed=1, dev=80.0)
    rows = read_rows([tmp_path / "rows"])
    assert len(rows.left_out) == 7
    assert "left out: 7 of the files" in rows.notes()[1]
    assert "torn0.json: not a readable row" in rows.notes()[1]
    assert "and 2 more" in rows.notes()[1]


def test_a_folder_that_is_not_there_has_no_rows_and_says_so(tmp_path: Path) -> None:
    rows = read_rows([tmp_path / "nowhere"])
    assert rows.by_key == {}
    assert rows.notes() == [f"rows: 0 in {tmp_path / 'nowhere'} (not there)"]
