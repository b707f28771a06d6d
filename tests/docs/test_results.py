import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from elmo_tasks.render.sections import markdown_document, renew
from elmo_tasks.report import sections
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables.collect import Choice
from elmo_tasks.tables.command import execute
from elmo_tasks.tables.declare import Claims, Table
from elmo_tasks.tables.evaluate import evaluate
from elmo_tasks.tables.request import read_request
from experiments import arms, bilms, precision, readme, remaining, table2, table3
from experiments.claims import CLAIMS

REPO = Path(__file__).parents[2]
LOCAL = Choice(("data=local",))
RESULTS = (REPO / "docs" / "results.md").read_text("utf-8")


def test_the_results_are_those_of_the_committed_rows() -> None:
    rows = REPO / "experiments" / "rows"
    text = markdown_document(sections(read_rows([rows]))).replace(str(rows), "experiments/rows")
    assert renew(RESULTS, text) == RESULTS


@pytest.mark.parametrize(
    ("document", "declared"),
    [
        ("docs/results.md", (CLAIMS,)),
        ("docs/protocol.md", arms.TABLES),
        ("docs/paper_scale.md", (precision.TABLE,)),
        ("elmo_tasks/bundled/bilm/small/CARD.md", (bilms.TABLE,)),
    ],
)
def test_tables_within_documents_are_those_of_the_committed_rows(
    tmp_path: Path, document: str, declared: Sequence[Table | Claims]
) -> None:
    """Renewed by: elmo-tasks table claims (or arms, ...) rows=experiments/rows --into DOCUMENT."""
    text, copy = (REPO / document).read_text("utf-8"), tmp_path / "copy.md"
    copy.write_text(text, "utf-8")
    request = read_request([f"rows={REPO / 'experiments' / 'rows'}", "--into", str(copy)])
    assert execute(declared, request) == 0
    assert copy.read_text("utf-8").replace(str(REPO / "experiments" / "rows"), "experiments/rows") == text


def test_the_table_and_the_chart_of_readme_are_those_of_the_committed_rows() -> None:
    """Renewed by: elmo-tasks table readme --into README.md --figure docs/gains.svg."""
    text = (REPO / "README.md").read_text("utf-8")
    assert renew(text, readme.table(), "gains") == text
    assert readme.figure() == (REPO / "docs" / "gains.svg").read_text("utf-8")


def test_the_numbers_of_remaining_runs_are_those_of_the_committed_rows() -> None:
    """Renewed by: elmo-tasks table remaining --into docs/results.md."""
    assert renew(RESULTS, remaining.table(), remaining.BLOCK) == RESULTS


def test_runs_that_several_cells_share_count_once() -> None:
    read = read_rows([REPO / "experiments" / "rows"])
    both = [cell for table in (table2.TABLE, table3.TABLE) for cell in evaluate(table, read, LOCAL).cells]
    snli = [cell for cell in both if cell.wanted.config["task"]["name"] == "snli"]
    there = {(cell.wanted.key, seed) for cell in snli for seed in cell.rows}
    asked = {(cell.wanted.key, seed) for cell in snli for seed in range(1, 6)}
    assert remaining.count_runs(snli) == {"snli": f"{len(there)} of {len(asked)}"}
    assert len(asked) == 30  # none, last, lambda 1 and 0.001; input, output and both, which has lambda 0.001


NAMES = {
    "coref": "coreference",
    "ner": "NER",
    "nsmc": "NSMC",
    "snli": "SNLI",
    "squad": "SQuAD",
    "srl": "SRL",
    "sst5": "SST-5",
}


@pytest.mark.parametrize("document", ["README.md", "docs/results.md"])
def test_the_note_says_of_each_task_whether_its_runs_had_converged(document: str) -> None:
    note = (REPO / document).read_text("utf-8").partition("> **Which gains to trust.**")[2].partition("\n\n")[0]
    converged, _, rising = note.partition("still rising")
    grid = readme.section().grid
    for line in grid.lines:
        task, training = (line[grid.header.index(name)] for name in ("task", "training"))
        assert NAMES[task] in (rising if training == "still rising" else converged), task


def test_the_first_page_counts_the_verdicts_of_the_claims() -> None:
    verdicts = re.findall(r"^\| \d+ \|.*\| (.*) \|$", RESULTS, re.MULTILINE)
    assert len(verdicts) == 12
    assert Counter(verdicts) == {"reproduced": 7, "not reproduced": 5}
    text = " ".join((REPO / "README.md").read_text("utf-8").split())
    assert "Twelve claims" in text
    assert "seven are reproduced and five are not" in text


def test_the_quick_start_names_the_scores_of_the_rows() -> None:
    rows = [row for row in read_rows([REPO / "experiments" / "rows"]).finished if row.slug.startswith("sample-")]
    text = " ".join((REPO / "README.md").read_text("utf-8").split())
    by_place = {
        place: {row.seed: row.score for row in rows if row.task == "ner" and row.elmo and row.elmo.placement == place}
        for place in ("none", "input")
    }
    baseline, elmo = (f"{by_place[place][1]:.1f}" for place in ("none", "input"))
    assert f"{baseline} without ELMo and {elmo} with it" in text
    means = " and ".join(f"{fmean(scores.values()):.1f}" for scores in by_place.values())
    assert f"(means of three seeds: {means})" in text


def test_the_card_of_the_bundled_bilm_gives_the_recorded_perplexities() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "mini" / "CARD.md").read_text("utf-8")
    records = REPO / "experiments" / "bilm_mini"
    first = [line.split(",") for line in (records / "first_run_dev.csv").read_text().splitlines()[1:]]
    second, third, fourth, fifth = (
        json.loads((records / f"{name}_run.json").read_text()) for name in ("second", "third", "fourth", "fifth")
    )
    assert_curve(card, [float(line[1]) for line in first], second["curve"])
    assert_curve(card, [], third["curve"])
    assert_curve(card, [], fourth["training"]["curve"])
    assert_curve(card, [], fifth["training"]["curve"])
    assert_final(card, fifth)
    earlier, now = (row["scores"]["dev"]["perplexity"] for row in (third, fifth))
    assert f"was {earlier:.1f}; today's has {now:.1f}" in " ".join(RESULTS.split())


def test_the_card_of_the_bundled_bilm_gives_its_perplexities_by_kind_of_text() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "mini" / "CARD.md").read_text("utf-8")
    rows = [json.loads(path.read_text()) for path in (REPO / "experiments" / "rows").glob("lm-local-cpu-mini-*.json")]
    by_text = {row["config"]["task"]["lm"]["text"]: row for row in rows}
    for text, corpus in {"snli": "SNLI", "sst5": "SST-5", "ner": "CoNLL-2003", "squad": "SQuAD"}.items():
        before, after = (
            by_text[text]["language_model"]["before"]["perplexity"],
            by_text[text]["scores"]["dev"]["perplexity"],
        )
        assert f"({corpus}) | {before:.1f} | {after:.1f} |" in card


def test_the_card_of_the_bundled_bilm_gives_its_scores_for_word_senses() -> None:
    card = " ".join((REPO / "elmo_tasks" / "bundled" / "bilm" / "mini" / "CARD.md").read_text("utf-8").split())
    probes = probe_scores("wsd", "mini")
    assert f"layer 2 reaches {probes['layer_2']:.1f} F1; the first-sense baseline has {probes['none']:.1f}" in card


def test_the_card_of_small_gives_its_scores_for_word_senses_and_parts_of_speech() -> None:
    card = " ".join((REPO / "elmo_tasks" / "bundled" / "bilm" / "small" / "CARD.md").read_text("utf-8").split())
    for task, name in {"wsd": "word senses (F1)", "pos": "parts of speech (accuracy)"}.items():
        scores = [probe_scores(task, bilm)[layer] for bilm in ("mini", "small") for layer in ("layer_1", "layer_2")]
        none = probe_scores(task, "mini")["none"]
        assert f"| {name} | {' | '.join(f'{score:.2f}' for score in [none, *scores])} |" in card


def probe_scores(task: str, bilm: str) -> dict[str, float]:
    """Test scores of seed 1, by layer; "none" is the probe without a biLM."""
    rows = [row for row in read_rows([REPO / "experiments" / "rows"]).finished if row.task == task and row.seed == 1]
    return {
        row.elmo.mix if row.bilm else "none": next(iter(row.scores["test"].values()))
        for row in rows
        if row.elmo and (row.bilm is None or row.bilm.name == bilm)
    }


@pytest.mark.parametrize("name", ["small", "mini_ko"])
def test_the_cards_of_bilms_that_one_command_trained_give_the_recorded_perplexities(name: str) -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / name / "CARD.md").read_text("utf-8")
    row = json.loads((REPO / "experiments" / f"bilm_{name}" / "run.json").read_text())
    assert_curve(card, [], row["training"]["curve"])
    assert_final(card, row)


def test_the_card_of_small_gives_the_comparison_of_dropout_rates() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "small" / "CARD.md").read_text("utf-8")
    names = ("without_dropout", "with_dropout")
    rows = [json.loads((REPO / "experiments" / "bilm_small" / f"{name}.json").read_text()) for name in names]
    assert [row["config"]["task"]["model"]["dropout"] for row in rows] == [0.0, 0.1]
    without, dropped = (row["training"]["curve"][-1]["dev"]["perplexity"] for row in rows)
    assert f"{without:.1f} without dropout and of {dropped:.1f} with dropout 0.1" in " ".join(card.split())


def test_the_card_of_small_gives_the_printed_costs_of_starting_from_zeros() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "small" / "CARD.md").read_text("utf-8")
    printed = (REPO / "experiments" / "benchmarks" / "lm_reading.txt").read_text().splitlines()[3:]
    figures = {name: (float(carried), float(zeros)) for name, carried, zeros in map(str.split, printed)}
    costs = {name: f"{100 * (zeros / carried - 1):.1f}" for name, (carried, zeros) in figures.items()}
    without = costs.pop("without_forget")
    expected = f"by {without} % for an early `mini` that was trained without it, and by {min(costs.values())} to "
    assert f"{expected}{max(costs.values())} % for those trained with 0.02" in " ".join(card.split())


def test_the_card_of_the_bundled_korean_bilm_gives_its_scores_on_nsmc() -> None:
    card = (REPO / "elmo_tasks" / "bundled" / "bilm" / "mini_ko" / "CARD.md").read_text("utf-8")
    rows = [row for row in read_rows([REPO / "experiments" / "rows"]).finished if row.task == "nsmc"]
    without, both = (
        [row.scores["test"]["accuracy"] for row in rows if (row.bilm is not None) == wanted] for wanted in (False, True)
    )
    assert len(without) == len(both) == 5
    gain = fmean(both) - fmean(without)
    expected = f"brings {gain:.2f} points ({fmean(without):.2f} without it, {fmean(both):.2f} with it at both places"
    assert expected in " ".join(card.split())


def assert_curve(card: str, before: list[float], points: list[dict[str, Any]]) -> None:
    curve = before + [point["dev"]["perplexity"] for point in points]
    assert f"| mean perplexity | {' | '.join(f'{value:.1f}' for value in curve)} |" in card


def assert_final(card: str, row: dict[str, Any]) -> None:
    final = row["scores"]["dev"]
    assert f"forward {final['forward']:.1f}, backward {final['backward']:.1f}, mean {final['perplexity']:.1f}" in card


def test_the_bundled_weights_stay_small() -> None:
    sizes = {path: path.stat().st_size for path in (REPO / "elmo_tasks" / "bundled" / "bilm").rglob("*")}
    assert sum(sizes.values()) < 85e6
    assert sum(size for path, size in sizes.items() if path.name != "softmax.safetensors") < 45e6  # in the wheel
