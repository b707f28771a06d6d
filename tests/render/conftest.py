"""Rows by hand, as a report reads them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rows_by_hand import changed, ensemble, finished, language_model, row_json

from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.io import write_row
from elmo_tasks.rows.schema import FailedRow, Row


@pytest.fixture(scope="session")
def make_row() -> Callable[..., Row]:
    """``make_row(seed, dev, placement=..., l2=..., ...)``: a finished row; other fields by dotted key."""

    def make(
        seed: int,
        dev: float | list[float],
        *,
        placement: str = "input",
        l2: float = 0.1,
        used: int = 1000,
        s: tuple[float, ...] = (0.5, 0.25, 0.25),
        task: str = "ner",
        members: list[int] | None = None,
        test: float | None = None,
        changes: dict[str, Any] | None = None,
    ) -> Row:
        config = {
            "task": {"name": task},
            "data": {"name": "local", "fraction": used / 1000},
            "scale": {"name": "cpu"},
            "trainer": {"max_epochs": 10, "max_steps": -1, "patience": 3, "precision": "32-true"},
            "elmo": {"placement": placement, "mix": "scalar", "lambda": l2, "dropout": 0.5, "layer_norm": False},
            "bilm": {"name": "mini"},
            "words": {"name": "glove"},
        }
        name = f"{task}-{placement}-l{l2:g}-u{used}-s{seed}"
        row = row_json(config, run_id=name, seed=seed, dev=dev, test=test)
        row["data"]["items"] = {"train": {"original": 1000, "used": used}}
        for part in (row["elmo"], *row["training"]["curve"]):
            weights = part["weights"] if part is row["elmo"] else part["elmo"]
            for mix in weights.values():
                mix |= {"s": list(s), "gamma": 1.0 + seed}
        if members is not None:
            row = ensemble(row, members) | {"run_id": f"{name}-{'-'.join(map(str, members))}"}
        return finished(changed(row, changes or {}))

    return make


@pytest.fixture(scope="session")
def make_lm_row(make_row: Callable[..., Row]) -> Callable[..., Row]:
    """``make_lm_row(seed, before, after)``: a finished training of a biLM; ``before=None`` if it began at random."""

    def make(seed: int, before: float | None, after: float, changes: dict[str, Any] | None = None) -> Row:
        config = {
            "task": {"name": "lm"},
            "data": {"name": "local"},
            "scale": {"name": "cpu"},
            "trainer": {},
            "bilm": {},
            "elmo": {"placement": "none", "mix": "scalar"},
        }
        row = row_json(config, run_id=f"lm-s{seed}", seed=seed, dev=after)
        row = language_model(row, before=before, after=after, folder="runs/lm/bilm", exported="e")
        return finished(changed(row, changes or {}))

    return make


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows into a folder, as a run does, and returns the folder."""

    def write(*rows: Row | FailedRow) -> Path:
        folder = tmp_path / "rows"
        folder.mkdir(exist_ok=True)
        for row in rows:
            write_row(folder / f"{row.run_id}.json", row)
        return folder

    return write


@pytest.fixture(scope="session")
def collect() -> Callable[..., Rows]:
    """``collect(row, ...)``: the rows of a folder that has these."""

    def rows(*finished: Row) -> Rows:
        return Rows((Path("rows"),), [*finished], [], [])

    return rows
