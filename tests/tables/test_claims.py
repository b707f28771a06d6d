import importlib
from pathlib import Path
from typing import Any

import pytest
from bundled import mini

from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables import BestEpoch, Claim, Claims, Difference, Part, PassingEpoch, Score
from elmo_tasks.tables.claims import (
    NO_VERDICT,
    NOT_ENOUGH,
    NOT_REPRODUCED,
    NOT_TRAINED,
    REPRODUCED,
    gather_evidence,
    overall_verdict,
)
from elmo_tasks.tables.claims import verdict as decide
from elmo_tasks.tables.collect import Choice, Selection
from elmo_tasks.tables.evaluate import evaluate

LOCAL = Choice(("data=local",))
NER, NONE = "task=ner", "elmo.placement=none"
ELMO, BASELINE = Score((NER,)), Score((NER, NONE))
HELPS = Part("NER", ELMO, BASELINE)


def write_pairs(write: Any, elmo: list[float], baseline: list[float], *overrides: str) -> None:
    for seed, (high, low) in enumerate(zip(elmo, baseline, strict=True), start=1):
        write(NER, *overrides, seed=seed, dev=high)
        write(NER, *overrides, NONE, seed=seed, dev=low)


def verdict(tmp_path: Path, part: Part = HELPS, enough: int = 3, choice: Choice = LOCAL) -> str:
    return decide(gather_evidence(part, Selection(read_rows([tmp_path / "rows"]), choice), enough), enough)


@pytest.mark.parametrize(
    ("elmo", "baseline", "complete", "more_to_come"),
    [
        ([90.0, 91.0, 92.0], [80.0, 81.0, 82.5], REPRODUCED, REPRODUCED),
        ([80.0, 81.0, 82.5], [90.0, 91.0, 92.0], NOT_REPRODUCED, NOT_REPRODUCED),
        ([90.0, 80.0, 85.0], [85.0, 84.0, 83.0], NOT_REPRODUCED, NOT_ENOUGH),  # a difference within the spread
        ([84.0, 85.0, 89.0], [80.0, 81.0, 81.0], NOT_REPRODUCED, NOT_ENOUGH),  # p = 0.057
        ([90.0, 91.0], [80.0, 81.5], NOT_ENOUGH, NOT_ENOUGH),
        (
            [90.0, 91.0, 92.0],
            [87.0, 88.0, 89.0],
            REPRODUCED,
            NOT_ENOUGH,
        ),  # no spread: the direction, once all are there
        ([87.0, 88.0, 89.0], [90.0, 91.0, 92.0], NOT_REPRODUCED, NOT_ENOUGH),
        ([90.0, 91.0, 92.0], [90.0, 91.0, 92.0], NOT_REPRODUCED, NOT_ENOUGH),
        ([], [], NOT_ENOUGH, NOT_ENOUGH),
    ],
)
def test_the_verdict_follows_direction_and_test(
    tmp_path: Path, write: Any, elmo: list[float], baseline: list[float], complete: str, more_to_come: str
) -> None:
    write_pairs(write, elmo, baseline)
    assert verdict(tmp_path, enough=3) == complete
    assert verdict(tmp_path, enough=4) == more_to_come
    assert verdict(tmp_path, enough=4, choice=Choice(("data=local",), seeds=3)) == more_to_come


def test_two_seeds_are_not_enough_even_if_no_more_are_asked_for(tmp_path: Path, write: Any) -> None:
    write_pairs(write, [90.0, 91.0], [80.0, 81.0])
    assert verdict(tmp_path, enough=2) == NOT_ENOUGH


@pytest.mark.parametrize(("scores", "expected"), [((61.0, 62.0), REPRODUCED), ((62.0, 61.0), NOT_REPRODUCED)])
def test_where_nothing_is_trained_one_run_is_enough(
    tmp_path: Path, write: Any, scores: tuple[float, float], expected: str
) -> None:
    layers = [("task=wsd", f"elmo.mix=layer_{k}") for k in (1, 2)]
    part = Part("senses", Score(layers[1], "test"), Score(layers[0], "test"))
    assert verdict(tmp_path, part, enough=5) == NOT_ENOUGH
    for overrides, score in zip(layers, scores, strict=True):
        write(*overrides, test=score)
    found = gather_evidence(part, Selection(read_rows([tmp_path / "rows"]), Choice(("data=local",), seeds=3)), 5)
    assert decide(found, 5) == expected
    assert [cell.seeds for cell in found.cells] == [(1,), (1,)]


def test_rows_of_other_data_have_no_verdict(tmp_path: Path, write: Any) -> None:
    write_pairs(write, [90.0, 91.0, 92.0], [80.0, 81.0, 82.5])
    for seed in (1, 2, 3):
        write(NER, seed=seed, dev=99.0, data={"digest": "x"})
    assert verdict(tmp_path) == NOT_ENOUGH


def test_rows_of_other_bilm_weights_have_no_verdict(tmp_path: Path, write: Any) -> None:
    last = Part("NER", ELMO, Score((NER, "elmo.mix=last")))
    write_pairs(write, [90.0, 91.0, 92.0], [0.0, 0.0, 0.0])
    for digest, expected in ((mini(), REPRODUCED), ("b2", NOT_ENOUGH)):
        for seed, score in ((1, 80.0), (2, 81.0), (3, 82.5)):
            write(NER, "elmo.mix=last", seed=seed, dev=score, bilm={"digest": digest})
        assert verdict(tmp_path, last) == expected
    assert verdict(tmp_path) == REPRODUCED  # the baseline has no biLM


def test_a_gain_is_compared_with_a_gain_seed_by_seed(tmp_path: Path, write: Any) -> None:
    write_pairs(write, [60.0, 70.0, 80.0], [40.0, 51.0, 58.0], "data.fraction=0.1")  # 20, 19, 22
    write_pairs(write, [90.0, 93.0, 91.0], [88.0, 90.0, 90.0])  # 2, 3, 1
    small = (Score((NER, "data.fraction=0.1")), Score((NER, "data.fraction=0.1", NONE)))
    part = Part("NER", Difference(*small), Difference(ELMO, BASELINE))
    found = gather_evidence(part, Selection(read_rows([tmp_path / "rows"]), LOCAL), 3)
    assert (found.high, found.low) == ({1: 20.0, 2: 19.0, 3: 22.0}, {1: 2.0, 2: 3.0, 3: 1.0})
    assert decide(found, 3) == REPRODUCED
    assert len(found.cells) == 4


def test_epochs_are_compared_and_a_race_that_is_lost_counts_against(tmp_path: Path, write: Any) -> None:
    for seed, after in ((1, [71.0, 72.0]), (2, [10.0, 71.0]), (3, [10.0, 20.0])):
        write(NER, NONE, seed=seed, curve=[50.0, 60.0, 65.0, 70.0, 70.0])
        write(NER, seed=seed, curve=after)
    part = Part("NER", BestEpoch(BASELINE), PassingEpoch(ELMO, BASELINE))
    found = gather_evidence(part, Selection(read_rows([tmp_path / "rows"]), LOCAL), 3)
    assert (found.high, found.low) == ({1: 4, 2: 4, 3: 4}, {1: 1.0, 2: 2.0, 3: 5.0})


def test_epochs_that_no_seed_passes_are_not_reproduced_however_early_the_runs_ended(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2, 3):
        write(NER, NONE, seed=seed, curve=[50.0, 60.0, 65.0, 70.0, 70.0])
        write(NER, seed=seed, curve=[10.0, 20.0])
    claims = Claims(
        "c", (Claim("it is faster", (Part("NER", BestEpoch(BASELINE), PassingEpoch(ELMO, BASELINE)),)),), seeds=3
    )
    (line,) = evaluate(claims, read_rows([tmp_path / "rows"]), LOCAL).section.grid.lines
    assert line[3] == NOT_REPRODUCED


@pytest.mark.parametrize(("n_rising", "expected"), [(1, REPRODUCED), (2, NOT_TRAINED)])
def test_nothing_is_reproduced_by_runs_that_had_not_converged(
    tmp_path: Path, write: Any, n_rising: int, expected: str
) -> None:
    write_pairs(write, [90.0, 91.0, 92.0, 91.0, 90.0], [80.0, 81.0, 82.5, 80.5, 80.5])
    assert verdict(tmp_path, enough=5) == REPRODUCED
    for seed in range(1, n_rising + 1):
        write(NER, NONE, seed=seed, dev=80.0, training={"converged": False})
    assert verdict(tmp_path, enough=5) == expected
    claims = Claims("c", (Claim("it helps", (HELPS,)),), seeds=5)
    grid = evaluate(claims, read_rows([tmp_path / "rows"]), LOCAL).section.grid
    assert grid.lines[0][3] == expected
    assert (", still rising" in grid.lines[0][2]) is (expected == NOT_TRAINED)
    assert any(note.startswith("still rising: ") for note in grid.notes) is (expected == NOT_TRAINED)


def test_the_number_of_comparisons_is_corrected_for(tmp_path: Path, write: Any) -> None:
    write_pairs(write, [84.0, 85.0, 89.9], [80.0, 81.0, 83.5])  # p = 0.029
    clear = Part("half", Score((NER, "data.fraction=0.5")), Score((NER, "data.fraction=0.5", NONE)))
    write_pairs(write, [90.0, 91.0, 92.0], [80.0, 81.0, 82.5], "data.fraction=0.5")
    alone = Claims("c", (Claim("it helps", (HELPS,)),), seeds=4)
    many = Claims("c", (Claim("it helps", (HELPS,)), Claim("again", (HELPS,)), Claim("half", (clear,))), seeds=4)
    found = [evaluate(claims, read_rows([tmp_path / "rows"]), LOCAL).section.grid for claims in (alone, many)]
    assert [grid.lines[0][3] for grid in found] == [REPRODUCED, NOT_ENOUGH]
    assert found[1].lines[2][3] == REPRODUCED  # p = 0.000287, times three
    assert "Holm 0.000861" in found[1].lines[2][2]
    assert "Holm: p corrected for the number of comparisons in this table (3), run or not yet" in found[1].notes


def test_a_claim_is_reproduced_if_all_its_parts_are() -> None:
    assert overall_verdict([REPRODUCED, NOT_TRAINED, NOT_ENOUGH]) == NOT_TRAINED
    assert overall_verdict([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert overall_verdict([REPRODUCED, NOT_ENOUGH]) == NOT_ENOUGH
    assert overall_verdict([REPRODUCED, NOT_ENOUGH, NOT_REPRODUCED]) == NOT_REPRODUCED
    assert overall_verdict([]) == NOT_ENOUGH


def test_the_list_shows_evidence_and_verdict_of_claims_and_parts(tmp_path: Path, write: Any) -> None:
    write_pairs(write, [90.0, 91.0, 92.0], [80.0, 81.0, 82.5])
    other = Part("scale", Score((NER, "scale=paper")), ELMO)
    claims = Claims("c", (Claim("it helps", (HELPS,)), Claim("both", (HELPS, other))), seeds=3)
    found = evaluate(claims, read_rows([tmp_path / "rows"]), LOCAL)
    effect = "+9.83, 95 % CI +9.12 to +10.55"
    helps = (
        f"91.00 (3) against 81.17 (3): {effect} (paired t-test, t = 59.00, p = 0.000287, Holm 0.000861, n = 3 seeds)"
    )
    assert found.section.grid.lines == [
        ["1", "it helps", helps, REPRODUCED],
        ["2", "both", "", NOT_ENOUGH],
        ["", "NER", helps, REPRODUCED],
        ["", "scale", "missing against 91.00 (3)", NOT_ENOUGH],
    ]


def test_exceptions_of_a_claim_are_shown_and_planned_but_have_no_verdict(tmp_path: Path, write: Any) -> None:
    write_pairs(write, [90.0, 91.0, 92.0], [80.0, 81.0, 82.5])
    against = Part("the other way", BASELINE, ELMO)
    claims = Claims("c", (Claim("it helps", (HELPS,), not_judged=(against,)),), seeds=3)
    found = evaluate(claims, read_rows([tmp_path / "rows"]), LOCAL)
    assert [(line[1], line[3]) for line in found.section.grid.lines] == [
        ("it helps", REPRODUCED),
        ("NER", REPRODUCED),
        ("the other way", NO_VERDICT),
    ]
    assert found.section.grid.lines[2][2].startswith(
        "81.17 (3) against 91.00 (3): -9.83, 95 % CI -10.55 to -9.12 (paired t-test"
    )
    assert len(found.cells) == 4


def test_the_paper_s_claims_are_twelve_and_those_of_one_task_can_be_chosen(tmp_path: Path) -> None:
    claims = importlib.import_module("experiments.claims").CLAIMS
    assert len(claims.claims) == 12
    found = evaluate(claims, read_rows([tmp_path / "rows"]), Choice(("data=local",), tasks=frozenset({"ner"})))
    helps, free, exception = found.section.grid.lines
    assert helps[1] == "ELMo improves NER (test)"
    assert (free[0], free[3]) == ("8", NOT_ENOUGH)
    assert (exception[1], exception[3]) == ("NER: lambda 0.001 above 1 (the exception)", NO_VERDICT)
    lambdas = [cell.wanted.config["elmo"]["lambda"] for cell in found.cells[2:]]
    assert (lambdas, [cell.missing for cell in found.cells[2:]]) == ([0.001, 1], [(1, 2, 3, 4, 5)] * 2)


def test_what_is_shown_changes_no_verdict_and_no_correction(tmp_path: Path, write: Any) -> None:
    write_pairs(write, [84.0, 85.0, 89.9], [80.0, 81.0, 83.5])  # p = 0.029
    other = Part("SST-5", Score(("task=sst5",)), Score(("task=sst5", NONE)))
    claims = Claims("c", (Claim("both", (HELPS, other)), Claim("alone", (HELPS,)), Claim("SST-5", (other,))), seeds=3)
    rows = read_rows([tmp_path / "rows"])
    whole = evaluate(claims, rows, LOCAL)
    shown = evaluate(claims, rows, Choice(("data=local",), tasks=frozenset({"ner"})))
    all_lines = whole.section.grid.lines
    assert [line[:2] for line in all_lines] == [
        ["1", "both"],
        ["", "NER"],
        ["", "SST-5"],
        ["2", "alone"],
        ["3", "SST-5"],
    ]
    assert shown.section.grid.lines == [all_lines[0], all_lines[1], all_lines[3]]
    assert "Holm 0.107" in all_lines[3][2]  # of four, two of which have no rows
    assert "those of other tasks are not shown" in "".join(shown.section.grid.notes)
    assert {cell.wanted.config["task"]["name"] for cell in shown.cells} == {"ner"}


@pytest.mark.parametrize("rising", [(NER,), (NER, NONE)])
def test_nothing_is_refuted_by_runs_of_either_side_that_had_not_converged(
    tmp_path: Path, write: Any, rising: tuple[str, ...]
) -> None:
    write_pairs(write, [80.0, 81.0, 82.5], [90.0, 91.0, 92.0])
    assert verdict(tmp_path) == NOT_REPRODUCED
    for seed, score in ((1, 80.0), (2, 81.0), (3, 82.5)):
        write(*rising, seed=seed, dev=score if rising == (NER,) else score + 9, training={"converged": False})
    assert verdict(tmp_path) == NOT_TRAINED


def test_a_race_that_is_lost_ends_after_the_epochs_that_were_run(tmp_path: Path, write: Any) -> None:
    write(NER, NONE, seed=1, curve=[70.0, 60.0])
    write(NER, seed=1, curve=[10.0, 20.0, 30.0, 40.0])
    part = Part("NER", BestEpoch(BASELINE), PassingEpoch(ELMO, BASELINE))
    found = gather_evidence(part, Selection(read_rows([tmp_path / "rows"]), LOCAL), 3)
    assert (found.high, found.low) == ({1: 1.0}, {1: 5.0})
