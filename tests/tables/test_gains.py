"""What ELMo brings to each task, and the first page's table and chart of it."""

from pathlib import Path
from typing import Any

import pytest
from rows_by_hand import digest

from elmo_tasks.errors import UserError
from elmo_tasks.rows import describe
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables.gains import HEADER, evaluate_gains
from experiments import readme

NER, NONE = "task=ner", "elmo.placement=none"


def test_the_setting_nearest_to_the_defaults_is_compared_with_its_baseline(tmp_path: Path, write: Any) -> None:
    for seed, baseline, elmo in ((1, 80.0, 90.0), (2, 81.0, 90.5), (3, 82.0, 93.5)):
        write(NER, NONE, seed=seed, dev=1.0, test=baseline)
        write(NER, seed=seed, dev=1.0, test=elmo)
        write(NER, "elmo.lambda=0.7", "elmo.placement=both", seed=seed, dev=1.0, test=99.0)
        write(NER, "data.fraction=0.5", seed=seed, dev=1.0, test=98.0)
        write(NER, "bilm=small", seed=seed, dev=1.0, test=96.0)
        write(NER, "trainer.max_epochs=3", NONE, seed=seed, dev=1.0, test=97.0)
    found = evaluate_gains(read_rows([tmp_path / "rows"]))
    (line,) = found.grid.lines
    assert dict(zip(HEADER[4:], line[4:], strict=True)) == {
        "split": "test",
        "seeds": "3",
        "metric": "f1",
        "setting": "input, scalar, lambda 0.1",
        "baseline": "81.00 ± 1.00",
        "ELMo": "91.33 ± 1.89",
        "gain": "+10.33",
        "95 % CI": "+7.75 to +12.92",
        "p (Holm)": "0.0034",
        "training": "converged",
    }
    (pair,) = found.pairs
    assert (pair.name, pair.baseline.mean, round(pair.elmo.mean, 2), pair.rising) == ("ner", 81.0, 91.33, False)
    assert found.grid.notes == []


def test_unequal_numbers_of_seeds_stand_in_the_order_of_the_columns(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2, 3):
        write(NER, NONE, seed=seed, dev=80.0 + seed)
    for seed in (1, 2):
        write(NER, seed=seed, dev=90.0)
    (line,) = evaluate_gains(read_rows([tmp_path / "rows"])).grid.lines
    assert dict(zip(HEADER, line, strict=False))["seeds"] == "3 and 2"  # the baseline's first


def test_a_gain_on_shared_seeds_is_explained_where_a_side_has_more(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2, 3, 4, 5):
        write(NER, NONE, seed=seed, dev=70.0 + seed)
    for seed in (3, 4, 5):
        write(NER, seed=seed, dev=76.0 + seed)
    found = evaluate_gains(read_rows([tmp_path / "rows"]))
    grid, (pair,) = found.grid, found.pairs
    shown = dict(zip(HEADER, grid.lines[0], strict=True))
    assert f"{pair.gain:+.2f}" == shown["gain"]
    assert (shown["seeds"], shown["baseline"], shown["ELMo"], shown["gain"]) == (
        "5 and 3",
        "73.00 ± 1.58",
        "80.00 ± 1.00",
        "+6.00",
    )
    assert grid.notes == ["ner: the gain is on the 3 shared seeds; the means are those of all seeds"]


@pytest.mark.parametrize("names", [("older", "newer"), ("zz-older", "aa-newer")])
@pytest.mark.parametrize("changed", ["bilm", "data"])
def test_of_other_weights_or_data_files_the_newest_rows_count(
    tmp_path: Path, write: Any, names: tuple[str, str], changed: str
) -> None:
    for name, gain in zip(names, (5.0, 10.0), strict=True):
        digest = {changed: {"digest": name}}
        for seed in (1, 2, 3):
            write(NER, NONE, seed=seed, dev=80.0 + seed, **(digest if changed == "data" else {}))
            write(NER, seed=seed, dev=80.0 + gain + seed, **digest)
    grid = evaluate_gains(read_rows([tmp_path / "rows"])).grid
    (line,) = grid.lines
    assert dict(zip(HEADER, line, strict=True))["gain"] == "+10.00"
    assert grid.notes == ["ner: rows of other data files, vectors or weights are left out"]


def test_runs_with_copies_of_one_file_of_word_vectors_are_compared_and_averaged(tmp_path: Path, write: Any) -> None:
    for seed, name in ((1, "a.txt"), (2, "b.txt"), (3, "a.txt")):
        write(NER, NONE, "words.path=c.txt", seed=seed, dev=70.0 + seed, data={"word_vectors": digest("v")})
        write(NER, f"words.path={name}", seed=seed, dev=75.0 + 2 * seed, data={"word_vectors": digest("v")})
    (line,) = evaluate_gains(read_rows([tmp_path / "rows"])).grid.lines
    shown = dict(zip(HEADER, line, strict=True))
    assert (shown["seeds"], shown["gain"]) == ("3", "+7.00")


def test_the_bundled_bilm_counts_before_one_of_the_user_s_under_its_name(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2, 3):
        write(NER, NONE, seed=seed, dev=70.0 + seed)
        write(NER, seed=seed, dev=80.0 + seed)
        own = write(NER, f"bilm.path={tmp_path}", seed=seed, dev=60.0 + seed, bilm={"digest": "own"})
    rows = read_rows([tmp_path / "rows"])
    (line,) = evaluate_gains(rows).grid.lines
    shown = dict(zip(HEADER, line, strict=True))
    assert (shown["gain"], shown["setting"]) == ("+10.00", "input, scalar, lambda 0.1")
    (row,) = (row for row in rows.finished if row.run_id == own.stem)
    assert row.bilm is not None
    assert describe.elmo(row) == f"input, scalar, lambda 0.1, mini {row.bilm.digest[:4]}"


def test_dev_scores_stand_in_where_a_seed_has_no_test_score_and_runs_that_rise_are_marked(
    tmp_path: Path, write: Any
) -> None:
    for seed in (1, 2):
        write(NER, NONE, seed=seed, dev=70.0 + seed, training={"converged": False})
        write(NER, seed=seed, dev=80.0, test=90.0)
    found = evaluate_gains(read_rows([tmp_path / "rows"]))
    assert found.grid.lines[0][4] == "dev"
    assert found.grid.lines[0][-4:] == ["+8.50", "-", "-", "still rising"]  # two seeds are too few for a test
    assert found.grid.notes[0].startswith("still rising: ")
    assert found.pairs[0].rising


def test_without_a_baseline_there_is_no_gain(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1)
    assert evaluate_gains(read_rows([tmp_path / "rows"])).grid.lines == []


def test_a_data_set_can_be_chosen(tmp_path: Path, write: Any) -> None:
    for overrides in ((NER,), (NER, NONE)):
        write(*overrides, seed=1)
    assert len(evaluate_gains(read_rows([tmp_path / "rows"]), data="local").pairs) == 1
    assert evaluate_gains(read_rows([tmp_path / "rows"]), data="sample").pairs == ()


def test_the_first_page_s_table_and_chart_come_from_the_committed_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    document, chart = tmp_path / "README.md", tmp_path / "gains.svg"
    document.write_text("a <!-- gains: begin --> old <!-- gains: end --> b")
    readme.main(["--into", str(document), "--figure", str(chart)])
    assert document.read_text() == f"a <!-- gains: begin -->\n\n{readme.table()}\n\n<!-- gains: end --> b"
    assert chart.read_text("utf-8") == readme.figure()
    tasks = [line.split(" | ")[0].removeprefix("| ") for line in readme.table().splitlines()[2:] if line[:1] == "|"]
    assert len(tasks) == len(set(tasks)) >= 6
    assert all(f">{task}</text>" in chart.read_text("utf-8") for task in tasks)
    readme.main([])
    assert capsys.readouterr().out == f"{readme.table()}\n"
    document.write_text("no markers")
    with pytest.raises(UserError, match="gains: begin"):
        readme.main(["--into", str(document)])


def test_a_gain_at_other_settings_than_the_task_s_names_them(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2, 3):
        write(NER, NONE, "task.model.dropout=0.9", seed=seed, dev=80.0)
        write(NER, "task.model.dropout=0.9", seed=seed, dev=90.0)
    assert evaluate_gains(read_rows([tmp_path / "rows"])).grid.notes == [
        "ner, data=local: not as configured, but with task.model.dropout=0.9"
    ]


@pytest.mark.parametrize("placement", ["none", "input"])
def test_a_gain_is_marked_if_the_runs_of_either_side_had_not_converged(
    tmp_path: Path, write: Any, placement: str
) -> None:
    for seed in (1, 2, 3):
        for side in ("none", "input"):
            write(
                "task=ner",
                f"elmo.placement={side}",
                seed=seed,
                dev=70.0 + seed,
                training={"converged": side != placement},
            )
    (line,) = evaluate_gains(read_rows([tmp_path / "rows"])).grid.lines
    assert line[-1] == "still rising"


def test_a_gain_is_not_taken_over_two_test_sets(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2, 3):
        write(
            "task=ner",
            "elmo.placement=none",
            seed=seed,
            dev=70.0 + seed,
            test=10.0,
            data={"test_digest": digest("other")},
        )
        write("task=ner", seed=seed, dev=80.0 + seed, test=99.0)
    (line,) = evaluate_gains(read_rows([tmp_path / "rows"])).grid.lines
    shown = dict(zip(HEADER, line, strict=True))
    assert (shown["split"], shown["gain"]) == ("dev", "+10.00")


def test_the_p_of_each_gain_is_corrected_for_the_number_of_tasks(tmp_path: Path, write: Any) -> None:
    for task in ("ner", "sst5"):
        for seed, baseline, elmo in ((1, 80.0, 90.0), (2, 81.0, 90.5), (3, 82.0, 93.5)):
            write(f"task={task}", "elmo.placement=none", seed=seed, dev=baseline)
            write(f"task={task}", seed=seed, dev=elmo)
    lines = evaluate_gains(read_rows([tmp_path / "rows"])).grid.lines
    assert [dict(zip(HEADER, line, strict=True))["p (Holm)"] for line in lines] == ["0.0067"] * 2  # twice 0.00336
