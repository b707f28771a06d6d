"""Rows by hand: every number in them is chosen, so that a reader can check a table or a figure without a run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Row = dict[str, Any]


@pytest.fixture(scope="session")
def make_row() -> Callable[..., Row]:
    """``make_row(seed, dev, placement=..., l2=..., ...)``: a finished row with all that a report reads."""

    def make(
        seed: int,
        dev: float | list[float],
        *,
        placement: str = "input",
        l2: float = 0.1,
        used: int = 1000,
        s: tuple[float, ...] = (0.5, 0.25, 0.25),
        task: str = "ner",
    ) -> Row:
        curve = dev if isinstance(dev, list) else [dev]
        places = {"none": [], "both": ["input", "output"]}.get(placement, [placement])
        weights = {place: {"s": list(s), "gamma": 1.0 + seed} for place in places}
        points = [
            {"epoch": i, "step": 10 * i, "dev": {"f1": value}, "train_loss": 1.5, "elmo": weights}
            for i, value in enumerate(curve, start=1)
        ]
        trainer = {"max_epochs": 10, "max_steps": -1, "patience": 3, "precision": "32-true"}
        elmo = {"placement": placement, "mix": "scalar", "lambda": l2, "dropout": 0.5, "layer_norm": False}
        return {
            "schema": 1,
            "status": "finished",
            "run_id": f"{task}-{placement}-l{l2:g}-u{used}-s{seed}",
            "created": "2026-01-01T00:00:00+00:00",
            "commit": "c0ffee",
            "task": task,
            "seed": seed,
            "scale": "cpu",
            "metric": "f1",
            "scores": {"dev": {"f1": max(curve)}},
            "data": {"name": "local", "digest": "d", "train": {"original": 1000, "used": used}},
            "bilm": None if placement == "none" else {"name": "mini", "state": "reset", "digest": "b"},
            "layers": {"computed": 0, "read": 5000},
            "seconds": {"layers": 10.0, "fit": 60.0},
            "epochs": len(curve),
            "best_epoch": 1,
            "curve": json.loads(json.dumps(points)),  # not the same objects as elsewhere in the row
            "elmo": {"placement": placement, "mix": "scalar", "weights": weights},
            "config": {"elmo": elmo, "trainer": trainer, "task": {"name": task}, "words": {"name": "glove"}},
        }

    return make


@pytest.fixture(scope="session")
def make_lm_row(make_row: Callable[..., Row]) -> Callable[..., Row]:
    """``make_lm_row(seed, before, after)``: a finished training of a biLM; ``before=None`` if it began with chance."""

    def make(seed: int, before: float | None, after: float) -> Row:
        row = make_row(seed, after, task="lm", placement="none")
        perplexities = {"perplexity": after, "forward": after - 1, "backward": after + 1}
        row |= {"elmo": None, "metric": "perplexity", "scores": {"dev": perplexities}}
        row["data"] |= {"train": {"positions": 5000}, "vocabulary": 2000}
        row["config"]["task"]["lm"] = {"text": "snli"}
        row["curve"] = [{"epoch": 1, "step": 5, "dev": perplexities}]
        if before is not None:
            row |= {"start": {"init": "mini"}, "before": {"perplexity": before}}
            row["exported"] = {"folder": "runs/lm/bilm", "digest": "e"}
        return row

    return make


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes rows into a folder, as a run does, and returns the folder."""

    def write(*rows: Row) -> Path:
        folder = tmp_path / "rows"
        folder.mkdir(exist_ok=True)
        for row in rows:
            (folder / f"{row['run_id']}.json").write_text(json.dumps(row))
        return folder

    return write
