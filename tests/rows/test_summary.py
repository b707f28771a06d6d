"""What a run prints at its end."""

from pathlib import Path
from typing import Any

from elmo_tasks.rows.io import from_json
from elmo_tasks.runs.summary import print_summary


def test_the_summary_tells_scores_the_mix_and_what_reading_left_out(supervised: Any, capsys: Any) -> None:
    print_summary(from_json(supervised, "a row"), Path("rows/x.json"))
    lines = [line.strip("│").split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert {cells[0].strip(): cells[1].strip() for cells in lines} == {
        "dev": "accuracy 60.00",
        "items": "train 9   dev 5",
        "best epoch": "2 of 3",
        "resumed": "after 4 updates",
        "ELMo": "input, scalar",
        "input": "s 0.200 0.700 0.100   gamma 1.500",
        "while reading": "no gold label: 2",
        "biLM tokens": "5 computed, 6 read from the store",
        "seconds": "layers 1.0   fit 2.0   score 3.0",
    }


def test_a_folder_with_brackets_is_printed_as_it_is(supervised: Any, capsys: Any) -> None:
    print_summary(from_json(supervised, "a row"), Path("[old]/[/x]/rows/x.json"))
    assert "row: [old]/[/x]/rows/x.json\n" in capsys.readouterr().out


def test_a_fine_tuning_that_did_not_help_says_that_nothing_has_changed(language_model: Any, capsys: Any) -> None:
    language_model["training"]["best_epoch"] = 0
    language_model["training"]["curve"][0]["epoch"] = 0
    print_summary(from_json(language_model, "a row"), Path("rows/x.json"))
    assert "0 of 3, the initial weights are kept" in capsys.readouterr().out
