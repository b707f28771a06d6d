import importlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf
from rows_by_hand import changed, digest, finished, row_json

from elmo_tasks.errors import UserError
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.rows.settings import Setting
from elmo_tasks.tables import (
    Claim,
    Claims,
    Column,
    EpochsToPass,
    FineTuning,
    Gain,
    Line,
    Part,
    Quote,
    Score,
    Table,
    Weights,
)
from elmo_tasks.tables import paper as paper_module
from elmo_tasks.tables.collect import Choice, Selection
from elmo_tasks.tables.curves import mean_curve
from elmo_tasks.tables.evaluate import evaluate
from elmo_tasks.tables.paper import PAPER, value
from elmo_tasks.tables.table import make_pairs, measure
from elmo_tasks.tables.texts import EvaluatedTable

LOCAL = Choice(("data=local",))
NER, NONE = "task=ner", "elmo.placement=none"
BASELINE, ELMO = Column("baseline", (NONE,), "baseline"), Column("ELMo", (), "elmo")
TABLE = Table(
    title="A table",
    paper="table_1_test",
    seeds=3,
    lines=(Line("NER", (NER,), "ner"),),
    columns=(
        Quote("before", "previous_sota"),
        BASELINE,
        ELMO,
        Gain("increase", "ELMo", "baseline", paper="increase_absolute"),
        Gain("error", "ELMo", "baseline", relative=True),
    ),
)


def evaluated(tmp_path: Path, declared: Any, choice: Choice = LOCAL) -> EvaluatedTable:
    return evaluate(declared, read_rows([tmp_path / "rows"]), choice)


def three_seeds(write: Any) -> None:
    for seed, baseline, elmo in ((1, 80.0, 90.0), (2, 81.0, 90.5), (3, 82.0, 93.5)):
        write(NER, NONE, seed=seed, dev=baseline)
        write(NER, seed=seed, dev=elmo)


def test_a_line_shows_ours_the_paper_and_the_difference(tmp_path: Path, write: Any) -> None:
    three_seeds(write)
    found = evaluated(tmp_path, TABLE)
    assert found.section.grid.header == ["", "before", "baseline", "ELMo", "increase", "error"]
    assert found.section.grid.lines == [
        [
            "NER",
            "paper 91.93 ± 0.19, Peters et al. (2017)",
            "81.00 ± 1.00 (3); paper 90.15 (-9.15)",
            "91.33 ± 1.89 (3); paper 92.22 ± 0.1 (-0.89)",
            "+10.33; paper 2.06 (+8.27)",
            "+54.4 %",
        ]
    ]
    assert "data=local, scale=cpu, bilm=mini" in found.section.grid.notes
    assert "NER: 10 training items; commits c0ffee" in found.section.grid.notes
    (test,) = [note for note in found.section.grid.notes if "ELMo against baseline" in note]
    assert test == (
        "NER, ELMo against baseline: +10.33, 95 % CI +7.75 to +12.92 "
        "(paired t-test, t = 17.20, p = 0.00336, Holm 0.00336, n = 3 seeds)"
    )
    assert [cell.paper.v for cell in found.cells if cell.paper] == [90.15, 92.22]


def test_a_gain_is_that_of_the_seeds_that_are_compared(tmp_path: Path, write: Any) -> None:
    three_seeds(write)
    write(NER, seed=4, dev=10.0)
    table = replace(TABLE, seeds=4)
    found = evaluated(tmp_path, table).section.grid
    assert found.lines[0][3:] == [
        "71.00 ± 40.70 (4); paper 92.22 ± 0.1 (-21.22)",
        "+10.33 on the 3 shared seeds; paper 2.06 (+8.27)",
        "+54.4 % on the 3 shared seeds",
    ]
    assert any(
        note.startswith("NER, ELMo against baseline: +10.33, 95 % CI +7.75 to +12.92 on the 3 shared")
        for note in found.notes
    )


def test_a_perfect_baseline_leaves_no_error_to_reduce(tmp_path: Path, write: Any) -> None:
    write(NER, NONE, seed=1, dev=100.0)
    write(NER, seed=1, dev=99.0)
    assert evaluated(tmp_path, TABLE).section.grid.lines[0][4:] == ["-1.00; paper 2.06 (-3.06)", "missing"]


@pytest.mark.parametrize("declared", ["table", "epochs", "weights", "finetuning", "claims"])
def test_what_was_chosen_for_all_cells_is_in_a_note(tmp_path: Path, declared: str) -> None:
    line = (Line("NER", (NER,)),)
    things = {
        "table": Table("t", line, (BASELINE, ELMO)),
        "epochs": EPOCHS,
        "weights": Weights("w", line),
        "finetuning": FineTuning("f", line, "mini"),
        "claims": Claims("c", (Claim("it helps", (Part("NER", Score((NER,)), Score((NER, NONE))),)),)),
    }
    chosen = ("data=local", "data.root=bundled", "scale=cpu", "data.fraction=0.1", "trainer.max_epochs=1")
    notes = evaluated(tmp_path, things[declared], Choice(chosen)).section.grid.notes
    assert notes[0] == "data=local, scale=cpu, bilm=mini"
    assert notes[1] == "set for all cells: data.fraction=0.1, trainer.max_epochs=1"
    assert not any("set for all" in note for note in evaluated(tmp_path, things[declared]).section.grid.notes)


def test_missing_rows_are_named_and_no_number_is_invented(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, dev=90.0)
    (line,) = evaluated(tmp_path, TABLE).section.grid.lines
    assert line[2:] == [
        "missing; paper 90.15",
        "90.00 (1) [a]; paper 92.22 ± 0.1 (-2.22)",
        "missing; paper 2.06",
        "missing",
    ]
    assert "a: fewer seeds than asked for" in evaluated(tmp_path, TABLE).section.grid.notes


def test_settings_on_other_data_are_not_compared(tmp_path: Path, write: Any) -> None:
    three_seeds(write)
    for seed in (1, 2, 3):
        write(NER, seed=seed, dev=99.0, data={"digest": "other"})
    grid = evaluated(tmp_path, TABLE).section.grid
    assert grid.lines[0][4:] == ["missing; paper 2.06", "missing"]
    assert "NER, ELMo against baseline: not compared: the rows are of different data files" in grid.notes


def test_word_vectors_that_have_changed_under_one_path_are_neither_averaged_nor_compared(
    tmp_path: Path, write: Any
) -> None:
    own = ("words.path=v.txt",)
    line = Line("NER", (NER, *own))
    table = Table("t", (line,), (BASELINE, ELMO, Gain("g", "ELMo", "baseline")), seeds=3)
    for seed in (1, 2, 3):
        write(NER, *own, "elmo.placement=none", seed=seed, dev=80.0, data={"word_vectors": digest("v1")})
        write(NER, *own, seed=seed, dev=90.0, data={"word_vectors": digest("v1")})
    assert evaluated(tmp_path, table).section.grid.lines[0][-1] == "+10.00"
    write(NER, *own, seed=1, dev=99.0, data={"word_vectors": digest("v2")})
    grid = evaluated(tmp_path, table).section.grid
    assert grid.lines[0][1:] == ["80.00 ± 0.00 (3)", "99.00 (1) [af]", "missing"]
    assert "NER, ELMo against baseline: not compared: the rows are of different word vectors" in grid.notes


def test_settings_with_other_bilm_weights_are_compared_only_where_that_is_the_point(tmp_path: Path, write: Any) -> None:
    last = Column("last", ("elmo.mix=last",))
    table = Table("t", (Line("NER", (NER,)),), (BASELINE, last, ELMO, Gain("g", "ELMo", "last")), seeds=3)
    table = replace(table, compare=(("ELMo", "baseline"),))
    three_seeds(write)
    for seed in (1, 2, 3):
        write(NER, "elmo.mix=last", seed=seed, dev=80.0 + seed**2)
    assert evaluated(tmp_path, table).section.grid.lines[0][-1] == "+6.67"
    for seed in (1, 2, 3):
        write(NER, "elmo.mix=last", seed=seed, dev=80.0 + seed**2, bilm={"digest": "b2"})
    grid = evaluated(tmp_path, table).section.grid
    assert grid.lines[0][-1] == "missing"
    assert "NER, ELMo against last: not compared: the rows are of different biLM weights" in grid.notes
    assert any(note.startswith("NER, ELMo against baseline: +10.33") for note in grid.notes)  # which has none
    assert evaluated(tmp_path, replace(table, other_bilm=True)).section.grid.lines[0][-1] == "+6.67"


def test_the_split_of_a_line_overrides_that_of_the_table_and_is_in_a_note(tmp_path: Path, write: Any) -> None:
    write(NER, seed=1, dev=90.0, test=80.0)
    lines = (Line("on dev", (NER,), split="dev"), Line("on test", (NER,)))
    grid = evaluated(tmp_path, Table("t", lines, (Column("F1"),), split="test", seeds=1)).section.grid
    assert grid.lines == [["on dev", "90.00 (1)"], ["on test", "80.00 (1)"]]
    assert "on dev: dev scores" in grid.notes


def test_the_command_line_chooses_seeds_and_tasks_and_the_declaration_wins_over_its_overrides(
    tmp_path: Path, write: Any
) -> None:
    write(NER, "data.fraction=0.5", seed=1, dev=70.0)
    lines = (Line("half", (NER, "data.fraction=0.5")), Line("SST-5", ("task=sst5",)))
    table = Table("t", lines, (Column("F1"),), seeds=5)
    choice = Choice(("data=local", "data.fraction=0.1"), seeds=1, tasks=frozenset({"ner"}))
    assert evaluated(tmp_path, table, choice).section.grid.lines == [["half", "70.00 (1)"]]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (Table("t", (Line("x", ("task=chess",)),), (ELMO,)), "task=chess: unknown choice"),
        (Table("t", (Line("x", (NER, "elmo.speed=1")),), (ELMO,)), "unknown key 'elmo.speed'"),
        (Table("t", (Line("x", (NER,)),), (ELMO, Gain("g", "ELMo", "nothing"))), "unknown column 'nothing' of scores"),
        (Table("t", (Line("x", (NER,)),), (ELMO,), compare=(("a", "ELMo"),)), "unknown column 'a' of scores"),
        (Table("t", (Line("x", (NER,)),) * 2, (ELMO,)), "two lines have one label"),
        (Table("t", (Line("x", (NER,), "chess"),), (ELMO,), paper="table_1_test"), "no value under table_1_test.chess"),
        (Table("t", (Line("x", (NER,), x=1),), (ELMO,), axis="length"), "axis='length' is not one of share, epoch"),
        (Table("t", (Line("x", (NER,)),), (Column("e", ensemble=True),)), "an ensemble has two or more members"),
    ],
)
def test_a_declaration_that_asks_for_what_is_not_there_is_refused(tmp_path: Path, table: Table, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        evaluated(tmp_path, table)


def test_lines_along_an_axis_make_curves_that_break_where_rows_are_missing(tmp_path: Path, write: Any) -> None:
    lines = tuple(Line(f"{x:g}", (NER, f"data.fraction={x:g}"), x=x, curve="NER") for x in (1.0, 0.1, 0.5, 0.01))
    for fraction, scores in ((0.1, (10.0, 20.0)), (1.0, (80.0, 84.0))):
        for seed, score in enumerate(scores, start=1):
            write(NER, f"data.fraction={fraction:g}", seed=seed, dev=score)
    found = evaluated(tmp_path, Table("t", lines, (BASELINE, ELMO), axis="share"))
    assert found.section.axis == "share"
    (panel,) = found.section.panels
    assert (panel.title, panel.metric) == ("NER", "f1")
    (curve,) = panel.curves  # the baseline has no rows, and no curve
    assert (curve.name, curve.placement) == ("ELMo", "input")
    first, missing, last = curve.points  # 0.01, before the first rows, is not on the axis
    assert [(at.x, at.mean, at.n) for at in (first, last)] == [(0.1, 15.0, 2), (1.0, 82.0, 2)]
    assert [at.sd for at in (first, last)] == pytest.approx([7.0711, 2.8284], abs=1e-4)
    assert (missing.x, missing.n) == (0.5, 0)
    assert math.isnan(missing.mean)
    assert math.isnan(missing.sd)


def test_cells_of_other_data_files_than_their_neighbours_are_named(tmp_path: Path, write: Any) -> None:
    lines = tuple(Line(f"{x}", (NER, f"data.fraction={x}"), x=x, curve="NER") for x in (0.1, 1.0))
    table = Table("t", lines, (ELMO,), axis="share", seeds=1)
    write(NER, seed=1)
    for name, expected in (("d1", False), ("d2", True)):
        write(NER, "data.fraction=0.1", seed=1, data={"digest": name})
        notes = evaluated(tmp_path, table).section.grid.notes
        assert any(note.startswith("task=ner: not all rows are of the same data files") for note in notes) == expected


EPOCHS = EpochsToPass("Epochs", (Line("NER", (NER,)),), baseline=BASELINE, elmo=ELMO, seeds=3)


def test_a_race_ends_where_elmo_is_above_the_baseline_s_best(tmp_path: Path, write: Any) -> None:
    for seed, before, after in (
        (1, [50.0, 70.0, 60.0, 70.0], [60.0, 70.0, 71.0, 80.0]),  # equal is not above; the first best counts
        (2, [50.0, 55.0, 70.0, 75.0], [76.0, 60.0, 60.0, 60.0]),
        (3, [50.0, 60.0], [40.0, 41.0, 42.0]),
    ):
        write(NER, NONE, seed=seed, dev=75.0, curve=before)
        write(NER, seed=seed, dev=75.0, curve=after)
    found = evaluated(tmp_path, EPOCHS)
    assert found.section.grid.lines == [["NER", "2.7 ± 1.2", "2.0 ± 1.4", "12.5 ± 88.4 %", "2 of 3 passed"]]
    (panel,) = found.section.panels
    assert (found.section.axis, panel.title) == ("epoch", "NER")
    epochs = {curve.name: [at.x for at in curve.points] for curve in panel.curves}
    assert epochs == {"baseline": [1, 2], "ELMo": [1, 2, 3]}
    means = [at.mean for at in panel.curves[1].points]
    assert means == pytest.approx([(60 + 76 + 40) / 3, (70 + 60 + 41) / 3, (71 + 60 + 42) / 3])


def test_in_a_race_the_better_score_may_be_the_lower_one(tmp_path: Path, write: Any) -> None:
    loss = {"metric": {"higher_is_better": False}}
    write(NER, NONE, seed=1, curve=[50.0, 20.0, 30.0, 40.0], **loss)
    write(NER, seed=1, curve=[60.0, 30.0, 10.0], **loss)
    assert evaluated(tmp_path, EPOCHS).section.grid.lines == [["NER", "2.0", "3.0", "-50.0 %", "1 of 1 passed [a]"]]


def test_a_baseline_that_was_best_before_its_first_update_saves_none(tmp_path: Path, write: Any) -> None:
    path = write(NER, NONE, seed=1, curve=[50.0])
    row = json.loads(path.read_text())
    row["training"]["curve"][0] |= {"epoch": 0, "step": 0}
    path.write_text(json.dumps(row))
    write(NER, seed=1, curve=[60.0])
    assert evaluated(tmp_path, EPOCHS).section.grid.lines == [["NER", "0.0", "1.0", "-", "1 of 1 passed [a]"]]


@pytest.mark.parametrize("differing", [{"data": {"digest": "d2"}}, {"data": {"word_vectors": "b" * 16}}])
def test_runs_on_other_data_or_word_vectors_are_in_no_race(tmp_path: Path, write: Any, differing: Any) -> None:
    for seed in (1, 2, 3):
        write(NER, NONE, seed=seed, curve=[50.0, 60.0], data={"word_vectors": "a" * 16})
        write(NER, seed=seed, curve=[70.0], **{"data": {"word_vectors": "a" * 16} | differing["data"]})
    assert evaluated(tmp_path, EPOCHS).section.grid.lines[0][1:4] == ["missing"] * 3


def test_a_race_of_runs_that_had_not_converged_says_so(tmp_path: Path, write: Any) -> None:
    for seed in (1, 2, 3):
        write(NER, NONE, seed=seed, curve=[50.0, 60.0], training={"converged": False})
        write(NER, seed=seed, curve=[70.0])
    grid = evaluated(tmp_path, EPOCHS).section.grid
    assert grid.lines[0][-1] == "3 of 3 passed, still rising"
    assert any(note.startswith("still rising: more than one run of five") for note in grid.notes)


def test_a_cell_that_is_still_rising_is_marked_in_a_table(tmp_path: Path, write: Any) -> None:
    three_seeds(write)
    for seed in (1, 2):
        write(NER, NONE, seed=seed, dev=80.0 + seed, training={"converged": False}, created="2027-01-01T00:00:00+00:00")
    found = evaluated(tmp_path, replace(TABLE, chart=True)).section
    assert found.grid.lines[0][2].startswith("81.67 ± 0.58 (3), still rising [e]; paper 90.15")
    assert "still rising" not in found.grid.lines[0][3]
    assert [pair.rising for pair in found.pairs] == [True]
    (pair,) = found.pairs
    assert (pair.name, round(pair.baseline.mean, 2), round(pair.elmo.mean, 2)) == ("NER", 81.67, 91.33)


def test_a_race_that_nobody_wins_is_never_passed(tmp_path: Path, write: Any) -> None:
    write(NER, NONE, seed=1, curve=[60.0, 50.0])
    write(NER, seed=1, curve=[50.0])
    grid = evaluated(tmp_path, EPOCHS).section.grid
    assert grid.lines == [["NER", "1.0", "never", "never", "0 of 1 passed [a]"]]
    assert "a: fewer seeds than asked for" in grid.notes


def test_there_is_no_race_between_rows_of_different_data(tmp_path: Path, write: Any) -> None:
    write(NER, NONE, seed=1, curve=[50.0, 60.0])
    write(NER, seed=1, curve=[70.0, 80.0], data={"digest": "other"})
    assert evaluated(tmp_path, EPOCHS).section.grid.lines == [["NER", "missing", "missing", "missing", "0 [a]"]]


def test_layer_weights_are_averaged_and_hatched_as_in_the_paper(tmp_path: Path, write: Any) -> None:
    declared = Weights("w", (Line("NER", (NER,)),), seeds=3)
    for seed, s, gamma in ((1, [0.1, 0.8, 0.1], 1.0), (2, [0.3, 0.6, 0.5], 3.0)):
        weights = {"input": {"s": s, "gamma": gamma}}
        write(NER, seed=seed, commit=f"{seed}", elmo={"weights": weights})
    found = evaluated(tmp_path, declared)
    assert found.section.grid.lines == [["NER", "input", "2 [ab]", "0.200 //", "0.700 ::", "0.300 //", "2.000"]]
    assert found.section.mixes[0].s == pytest.approx((0.2, 0.7, 0.3))
    missing = evaluated(tmp_path, declared, Choice(("data=sample",)))
    assert missing.section.grid.lines == [["NER", "missing", "0", "", "", "", ""]]


def test_gamma_stands_below_its_heading_where_bilms_have_other_numbers_of_layers(tmp_path: Path, write: Any) -> None:
    deep = (NER, "bilm=small")
    declared = Weights("w", (Line("mini", (NER,)), Line("deep", deep)), seeds=1)
    write(NER, seed=1, elmo={"weights": {"input": {"s": [0.5, 0.5], "gamma": 1.5}}})
    weights = {"input": {"s": [0.4, 0.4, 0.2], "gamma": 2.5}}
    write(*deep, seed=1, elmo={"weights": weights}, bilm={"digest": "fedcba9876543210"})
    grid = evaluated(tmp_path, declared).section.grid
    assert grid.header[3:] == ["layer 0", "layer 1", "layer 2", "gamma"]
    assert [line[3:] for line in grid.lines] == [
        ["0.500", "0.500", "", "1.500"],
        ["0.400", "0.400", "0.200 //", "2.500"],
    ]


def test_the_paper_s_differences_are_those_of_its_scores() -> None:
    tasks = OmegaConf.to_container(OmegaConf.load(PAPER))["table_1_test"]  # type: ignore[index,call-overload]
    assert len(tasks) == 6
    for task in tasks:
        baseline, elmo = (value(f"table_1_test.{task}.{key}").v for key in ("baseline", "elmo"))
        assert value(f"table_1_test.{task}.increase_absolute").v == pytest.approx(elmo - baseline, abs=0.011)
        error = value(f"table_1_test.{task}.increase_relative_error").v
        assert error == pytest.approx(100 * (elmo - baseline) / (100 - baseline), abs=0.07)


def test_every_value_of_the_paper_names_sources_that_are_listed() -> None:
    content: Any = OmegaConf.to_container(OmegaConf.load(PAPER))
    sources = content.pop("sources")
    found = []

    def walk(node: Any) -> None:
        if isinstance(node, dict) and "v" in node:
            found.append(node)
        elif isinstance(node, dict):
            for child in node.values():
                walk(child)

    walk(content)
    assert len(found) > 60
    for node in found:
        assert node["source"], node
        assert set(node["source"]) <= set(sources), node


def test_a_value_that_nobody_has_seen_in_the_paper_is_marked(tmp_path: Path, monkeypatch: Any, write: Any) -> None:
    file = tmp_path / "paper.yaml"
    file.write_text("t:\n  ner:\n    elmo: {v: 92, verified: false, source: [x]}\n")
    monkeypatch.setattr(paper_module, "PAPER", file)
    grid = evaluated(tmp_path, Table("t", (Line("NER", (NER,), "ner"),), (ELMO,), paper="t")).section.grid
    assert grid.lines == [["NER", "missing; paper 92?"]]
    assert "?: a value of the paper that no consulted copy showed" in grid.notes


@pytest.mark.parametrize(
    ("name", "n_cells"),
    [
        *(("table1", 2), ("table2", 0), ("table3", 0), ("figure1", 18), ("figure2", 1), ("ensembles", 0)),
        *(("ablations", 7), ("precision", 3), ("bilms", 3)),
    ],
)
def test_every_declaration_of_the_repository_can_be_filled(tmp_path: Path, name: str, n_cells: int) -> None:
    module = importlib.import_module(f"experiments.{name}")
    declared = [thing for thing in vars(module).values() if isinstance(thing, Table | EpochsToPass | Weights)]
    assert declared
    choice = Choice(("data=local",), tasks=frozenset({"ner"}))
    cells = [cell for thing in declared for cell in evaluated(tmp_path, thing, choice).cells]
    assert len(cells) == n_cells
    assert all(cell.missing for cell in cells)


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "figure1"])
def test_tables_with_srl_say_that_the_paper_s_is_ontonotes(tmp_path: Path, name: str) -> None:
    module = importlib.import_module(f"experiments.{name}")
    for declared in [thing for thing in vars(module).values() if isinstance(thing, Table | EpochsToPass)]:
        notes = evaluated(tmp_path, declared, Choice(("data=local",), tasks=frozenset({"srl"}))).section.grid.notes
        assert any("OntoNotes; another corpus at data.root is not to be compared" in note for note in notes)


def test_the_number_of_training_items_is_shown_beside_the_paper_s(tmp_path: Path, write: Any) -> None:
    for task in ("snli", "squad", "coref", "ner"):
        write(f"task={task}", seed=1)
    lines = tuple(Line(task, (f"task={task}",)) for task in ("snli", "squad", "coref", "ner"))
    notes = evaluated(tmp_path, Table("t", lines, (Column("ELMo"),), seeds=1)).section.grid.notes
    found = [note.partition(";")[0] for note in notes if "training items" in note]
    papers = (" (the paper 550,000)", " (the paper 87,599)", " (the paper 2,802)", "")
    assert found == [f"{line.label}: 10 training items{paper}" for line, paper in zip(lines, papers, strict=True)]


def test_a_training_curve_has_the_last_score_of_each_epoch() -> None:
    config = {"task": {"name": "ner"}, "elmo": {"placement": "none", "mix": "scalar"}}
    row = row_json(config, run_id="r", seed=1, dev=[10.0, 20.0, 30.0])
    row = finished(changed(row, {"training.curve.1.epoch": 1, "training.curve.2.epoch": 2}))  # dev scored twice in 1
    assert [(at.x, at.mean) for at in mean_curve(Setting((row,)))] == [(1, 20.0), (2, 30.0)]


@pytest.mark.parametrize("placement", ["none", "input"])
def test_a_pair_of_a_chart_is_marked_if_either_end_is_still_rising(tmp_path: Path, write: Any, placement: str) -> None:
    columns = (Column("baseline", (NONE,)), Column("ELMo"), Gain("increase", "ELMo", "baseline"))
    table = Table("t", (Line("NER", (NER,)),), columns, seeds=1, chart=True)
    for side in ("none", "input"):
        write(NER, f"elmo.placement={side}", seed=1, dev=80.0, training={"converged": side != placement})
    (pair,) = make_pairs(measure(table, Selection(read_rows([tmp_path / "rows"]), LOCAL)))
    assert pair.rising
