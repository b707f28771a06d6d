from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.report import markdown, renew
from elmo_tasks.report.document import all_tables
from elmo_tasks.report.grid import Grid
from elmo_tasks.report.rows import Rows
from elmo_tasks.report.tables import layers_table, mix_table, perplexity_table, results_table

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def row(seed: int, dev: float, test: float | None = None, placement: str = "input") -> dict[str, Any]:
    scores = {"dev": {"f1": dev}} | ({} if test is None else {"test": {"f1": test}})
    weights = {"input": {"s": [0.5, 0.25, 0.25], "gamma": 1.0 + seed}} if placement == "input" else {}
    return {
        "task": "ner",
        "seed": seed,
        "scale": "cpu",
        "metric": "f1",
        "scores": scores,
        "data": {"name": "local", "digest": "d", "train": {"original": 1000, "used": 100}},
        "bilm": {"name": "mini", "state": "reset", "digest": "b", "dtype": "float16"},
        "layers": {"computed": 5000, "read": 0} if seed == 1 else {"computed": 0, "read": 5000},
        "seconds": {"layers": 10.0 / seed},
        "elmo": {"placement": placement, "mix": "scalar", "weights": weights},
        "config": {
            "elmo": {"lambda": 0.1, "placement": placement},
            "trainer": {"max_epochs": 10, "max_steps": -1, "patience": 3, "precision": "32-true"},
            "task": {"name": "ner"},
            "words": {"name": "glove"},
        },
    }


def lines_of(grid: Grid) -> list[str]:
    return markdown(grid).splitlines()


def test_a_cell_is_the_mean_and_sample_deviation_over_seeds() -> None:
    table = markdown(results_table([row(1, 80.0, 70.0), row(2, 82.0, 74.0), row(1, 50.0, placement="none")]))
    lines = table.splitlines()
    assert (
        lines[2]
        == "| ner | local | cpu | 100 of 1,000 | input, scalar, lambda 0.1 | 2 | f1 | 81.00 ± 1.41 | 72.00 ± 2.83 |"
    )
    assert lines[3] == "| ner | local | cpu | 100 of 1,000 | none | 1 | f1 | 50.00 | - |"


def test_elmo_without_word_vectors_is_told_apart() -> None:
    alone = row(1, 90.0)
    alone["config"]["words"] = {"name": "none"}
    lines = lines_of(results_table([row(1, 80.0), alone]))[2:]
    assert [line.split(" | ")[4] for line in lines] == ["input alone, scalar, lambda 0.1", "input, scalar, lambda 0.1"]


def test_a_score_that_some_seeds_lack_is_left_open() -> None:
    assert lines_of(results_table([row(1, 80.0, 70.0), row(2, 82.0)]))[2].endswith("| 81.00 ± 1.41 | - |")


def test_exact_match_stands_beside_the_f1_of_squad() -> None:
    rows = [row(1, 80.0), row(2, 82.0)]
    for member in rows:
        member["task"] = "squad"
        member["scores"]["dev"]["exact_match"] = member["scores"]["dev"]["f1"] - 10
    line = lines_of(results_table(rows))[2]
    assert line.endswith("| 2 | f1, exact_match | 81.00 ± 1.41, 71.00 ± 1.41 | - |")


def test_other_data_under_the_same_name_is_another_line() -> None:
    other = row(2, 90.0)
    other["data"]["digest"] = "e"
    assert len(lines_of(results_table([row(1, 80.0), other]))) == 4


def test_another_precision_of_the_layers_is_another_line() -> None:
    other = row(2, 90.0)
    other["bilm"]["dtype"] = "float32"
    assert len(lines_of(results_table([row(1, 80.0), other]))) == 4


def test_another_schedule_is_another_line() -> None:
    other = row(2, 90.0)
    other["config"]["trainer"]["max_epochs"] = 5
    assert len(lines_of(results_table([row(1, 80.0), other]))) == 4


def test_seeds_that_draw_their_data_are_one_line() -> None:
    rows = [row(1, 80.0), row(2, 82.0)]
    for member in rows:
        member["config"]["task"] = {"name": "wsd", "data": {"seed": member["seed"]}}
    (line,) = lines_of(results_table(rows))[2:]
    assert line.endswith("| 2 | f1 | 81.00 ± 1.41 | - |")


def test_another_bilm_or_state_is_named() -> None:
    other = row(1, 80.0)
    other["bilm"] |= {"name": "mini-ko", "state": "warm"}
    assert "| input, scalar, lambda 0.1, mini-ko, warm | 1 |" in markdown(results_table([other]))
    assert "| input, scalar, lambda 0.1, mini-ko, warm | input |" in markdown(mix_table([other]))


def test_mixes_are_averaged_over_seeds() -> None:
    assert lines_of(mix_table([row(1, 0.0), row(2, 0.0)]))[2].endswith("| input | 0.500, 0.250, 0.250 | 2.500 |")


def test_first_and_later_passes_of_the_bilm_are_told_apart() -> None:
    line = lines_of(layers_table([row(1, 0.0), row(2, 0.0), row(4, 0.0)]))[2]
    assert line.endswith("| 1 run, 5,000 tokens | 10.0 | 2 runs, 5,000 tokens | 3.8 |")


def test_only_what_is_between_the_markers_is_renewed() -> None:
    assert renew(f"a{BEGIN}old{END}b", "new") == f"a{BEGIN}\n\nnew\n\n{END}b"
    with pytest.raises(UserError, match="has no"):
        renew("a", "new")


def test_trainings_of_bilms_have_a_table_of_their_own_if_there_are_any(make_row: Any, make_lm_row: Any) -> None:
    rows = [make_lm_row(2, None, 50.0), make_row(1, 80.0), make_lm_row(1, 120.25, 40.0)]
    assert perplexity_table(rows).lines == [
        ["local", "snli", "cpu", "5,000 positions", "2,000", "1", "mini", "120.2", "40.0", "39.0", "41.0"],
        ["local", "snli", "cpu", "5,000 positions", "2,000", "2", "-", "-", "50.0", "49.0", "51.0"],
    ]
    assert [grid.title for grid in all_tables(Rows(rows, [], []))][3:] == [perplexity_table(rows).title]
    assert len(all_tables(Rows([rows[1]], [], []))) == 3
