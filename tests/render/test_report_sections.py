"""The tables of a report: what is averaged, what is kept apart, and its notes."""

from collections.abc import Callable
from typing import Any

import pytest

from elmo_tasks.rows.collection import Rows, read_rows
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.report_sections import PARTS

MakeRow = Callable[..., Row]
Collect = Callable[..., Rows]


def lines(part: str, rows: Rows) -> list[list[str]]:
    return PARTS[part](rows).grid.lines


def test_a_cell_is_the_mean_and_sample_deviation_over_seeds(make_row: MakeRow, collect: Collect) -> None:
    rows = collect(
        make_row(1, 80.0, used=100, test=70.0),
        make_row(2, 82.0, used=100, test=74.0),
        make_row(1, 50.0, used=100, placement="none"),
    )
    plugged, baseline = lines("scores", rows)
    assert plugged[:5] == ["ner", "local", "cpu", "100 of 1,000", "input, scalar, lambda 0.1"]
    assert plugged[6:] == ["2", "f1", "81.00 ± 1.41", "72.00 ± 2.83", "", "converged"]
    assert baseline[4] == "none"
    assert baseline[6:] == ["1", "f1", "50.00", "-", "", "converged"]


def test_a_score_that_some_seeds_lack_is_left_open(make_row: MakeRow, collect: Collect) -> None:
    rows = collect(make_row(1, 80.0, test=70.0), make_row(2, 82.0))
    (line,) = lines("scores", rows)
    assert line[8:10] == ["81.00 ± 1.41", "-"]
    assert any(
        note.endswith(": no mean on test, 1 of 2 seeds have a score") for note in PARTS["scores"](rows).grid.notes
    )


def test_scores_on_different_test_files_are_not_averaged(make_row: MakeRow, collect: Collect) -> None:
    tested = [make_row(seed, 80.0, test=70.0, changes={"data.test_digest": f"{seed}" * 8}) for seed in (1, 2)]
    rows = collect(*tested)
    (line,) = lines("scores", rows)
    assert line[8:10] == ["80.00 ± 0.00", "-"]
    assert any(
        note.endswith(": no mean on test, the seeds were scored on different files")
        for note in PARTS["scores"](rows).grid.notes
    )


def test_all_reported_scores_of_a_metric_stand_side_by_side(make_row: MakeRow, collect: Collect) -> None:
    rows = [
        make_row(seed, score, task="squad", changes={"scores.dev.exact_match": score - 10})
        for seed, score in ((1, 80.0), (2, 82.0))
    ]
    (line,) = lines("scores", collect(*rows))
    assert line[6:11] == ["2", "f1", "81.00 ± 1.41", "-", "dev exact_match 71.00 ± 1.41"]


@pytest.mark.parametrize(
    "changes",
    [
        {"data.digest": "eeeeeeee"},
        {"bilm.digest": "cccccccc"},
        {"bilm.warm": "cccccccc"},
        {"config.bilm.store": {"dtype": "float32"}},
        {"config.bilm.precision": "bfloat16"},
        {"config.trainer.max_epochs": 5},
        {"config.trainer.val_check_interval": 5},
        {"config.trainer.limit_val_batches": 0.5},
        {"config.trainer.new_key": 1},
        {"config.words.name": "none"},
        {"config.task.size": 5},
    ],
)
def test_runs_that_differ_in_anything_that_can_change_a_score_are_two_lines(
    make_row: MakeRow, collect: Collect, changes: dict[str, Any]
) -> None:
    found = lines("scores", collect(make_row(1, 80.0), make_row(2, 90.0, changes=changes)))
    assert [line[6] for line in found] == ["1", "1"]
    assert found[0][:6] != found[1][:6]  # and a reader can tell them apart


@pytest.mark.parametrize("n", [2, 3])
def test_lines_that_look_the_same_show_the_digests_in_which_they_differ(
    make_row: MakeRow, collect: Collect, n: int
) -> None:
    rows = [make_row(k, 80.0, changes={"bilm.digest": str(k) * 8}) for k in range(1, n + 1)]
    keys = [line[5] for line in lines("scores", collect(*rows))]
    assert [text.rpartition(", ")[2] for text in keys] == [f"biLM {str(k) * 4}" for k in range(1, n + 1)]
    assert not any("data " in text for text in keys)


@pytest.mark.parametrize("changes", [{"config.trainer.threads": 3}, {"config.data.root": "B"}, {"device": "cuda"}])
def test_runs_that_differ_in_nothing_else_are_one_line(
    make_row: MakeRow, collect: Collect, changes: dict[str, Any]
) -> None:
    (line,) = lines("scores", collect(make_row(1, 80.0), make_row(2, 90.0, changes=changes)))
    assert line[6] == "2"


def test_keys_that_differ_from_the_task_s_default_are_shown(make_row: MakeRow, collect: Collect) -> None:
    (line,) = lines("scores", collect(make_row(1, 80.0, changes={"config.trainer.patience": 77})))
    assert "trainer.patience=77" in line[5].split(", ")


@pytest.mark.parametrize(("n_rising", "expected"), [(0, "converged"), (1, "converged"), (2, "still rising")])
def test_more_than_one_seed_of_five_that_had_not_converged_is_marked(
    make_row: MakeRow, collect: Collect, n_rising: int, expected: str
) -> None:
    rows = [make_row(k, 80.0, changes={"training.converged": k > n_rising}) for k in range(1, 6)]
    assert lines("scores", collect(*rows))[0][-1] == expected
    names = [row.run_id for row in rows]
    both = make_row(1, 81.0, members=[1, 2, 3, 4, 5])
    members = [{"run_id": name, "seed": k, "weights": None} for k, name in enumerate(names, start=1)]
    together = make_row(1, 81.0, members=[1, 2, 3, 4, 5], changes={"ensemble.members": members})
    assert both.converged
    (line,) = [line for line in lines("scores", collect(*rows, together)) if "ensemble of 5" in line[4]]
    assert line[-1] == expected


def test_of_two_rows_for_a_seed_the_newer_counts_and_the_other_is_named(
    make_row: MakeRow, write_rows: Callable[..., Any]
) -> None:
    older = {"run_id": "again", "created": "2026-01-01T01:30:00+02:00"}  # the last text, the first time
    folder = write_rows(make_row(1, 81.0), make_row(2, 82.0), make_row(1, 20.0, changes=older))
    section = PARTS["scores"](read_rows([folder]))
    assert section.grid.lines[0][6:9] == ["2", "f1", "81.50 ± 0.71"]
    assert "again: left out, an older run of a setting and seed" in section.grid.notes


def test_ensembles_of_other_members_are_lines_of_their_own(make_row: MakeRow, collect: Collect) -> None:
    found = lines("scores", collect(*(make_row(1, 80.0, members=[1, 2, n]) for n in (3, 4)), make_row(1, 70.0)))
    assert [line[4].endswith("ensemble of 3") for line in found].count(True) == 2
    assert {line[6] for line in found} == {"1"}


def test_mixes_are_averaged_over_seeds(make_row: MakeRow, collect: Collect) -> None:
    (line,) = lines("weights", collect(make_row(1, 0.0), make_row(2, 0.0)))
    assert line[-3:] == ["input", "0.500, 0.250, 0.250", "2.500"]


def test_first_and_later_passes_of_the_bilm_are_distinguished(make_row: MakeRow, collect: Collect) -> None:
    first = make_row(1, 0.0, changes={"layers": {"computed": 5000, "read": 0}})
    later = [make_row(seed, 0.0, changes={"seconds.layers": seconds}) for seed, seconds in ((2, 5.0), (4, 2.5))]
    (line,) = lines("layers", collect(first, *later))
    assert line[-4:] == ["1 run, 5,000 tokens", "10.0", "2 runs, 5,000 tokens", "3.8"]


def test_trainings_of_bilms_have_a_table_of_their_own(
    make_row: MakeRow, make_lm_row: MakeRow, collect: Collect
) -> None:
    rows = collect(make_lm_row(1, 120.25, 40.0), make_lm_row(2, None, 50.0), make_row(1, 80.0))
    about = ["local", "snli", "cpu", "5,000 positions", "1", "2,000", "10.0%"]
    assert lines("perplexities", rows) == [
        ["mini", *about, "1", "mini", "120.2", "40.0", "39.0", "41.0"],
        ["mini", *about, "2", "-", "-", "50.0", "49.0", "51.0"],
    ]
    assert PARTS["perplexities"](collect(make_row(1, 80.0))).grid.header == []
    alone = make_lm_row(1, 120.25, 40.0, {"metric.reported": ["perplexity"], "scores.dev": {"perplexity": 40.0}})
    assert lines("perplexities", collect(alone))[0][-3:] == ["40.0", "-", "-"]
    continued = make_lm_row(1, 120.25, 40.0, {"language_model.before": None})  # dev was scored in part
    assert lines("perplexities", collect(continued))[0][9:11] == ["mini", "-"]
