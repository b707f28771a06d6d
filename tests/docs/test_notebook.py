import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "elmo.ipynb"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cells() -> list[dict[str, Any]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def printed(cells: list[dict[str, Any]]) -> list[str]:
    """What each cell prints when all are executed in order."""
    names: dict[str, Any] = {}
    found = []
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec("".join(cell["source"]), names)
        found.append(out.getvalue())
    return found


def without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "#", text)


def test_the_stored_output_is_what_the_cells_print(cells: list[dict[str, Any]], printed: list[str]) -> None:
    """Numbers may differ from machine to machine in their last digits."""
    stored = ["".join(line for part in cell["outputs"] for line in part["text"]) for cell in cells]
    assert list(map(without_numbers, stored)) == list(map(without_numbers, printed))


def test_the_contextual_layers_find_the_same_sense(printed: list[str]) -> None:
    by_layer = printed[1].split("layer ")[1:]
    assert len(by_layer) == 3
    for shown in by_layer[1:]:
        assert "million dollars" in shown.splitlines()[1]
        assert "interest rates" in shown.splitlines()[2]


def test_the_classifier_beats_the_majority_and_its_weights_sum_to_one(printed: list[str]) -> None:
    accuracy, majority = map(int, re.findall(r"(\d+) %", printed[3]))
    assert accuracy > majority
    weights = re.findall(r"layer \d (\d\.\d\d)", printed[4])
    assert sum(map(float, weights)) == pytest.approx(1, abs=0.02)
