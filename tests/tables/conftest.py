"""Rows as a run would write them, without the run."""

import copy
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bundled import mini

from elmo_tasks.report.check import metrics
from elmo_tasks.tables.settings import setting

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write("task=snli", ..., seed=1, dev=60.0)`` writes a row into tmp_path / "rows"; other fields by name."""
    folder = tmp_path / "rows"
    folder.mkdir()

    def write_row(*overrides: str, seed: int = 1, dev: float = 50.0, test: float | None = None, **other: Any) -> Path:
        config = copy.deepcopy(setting(("data=local", *overrides)).config)
        config["seed"] = seed
        task, placement = config["task"]["name"], config["elmo"]["placement"]
        plugged, trained = placement != "none", "model" in config["task"]
        metric = {"sst5": "accuracy", "snli": "accuracy", "pos": "accuracy"}.get(task, "f1")
        places = {"none": [], "both": ["input", "output"]}.get(placement, [placement]) if trained else []
        weights = {place: {"s": [0.2, 0.7, 0.1], "gamma": 1.5} for place in places}
        scores = partial(dict.fromkeys, metrics({"metric": metric, "task": task}))
        n = len(list(folder.iterdir()))
        row = {
            "schema": 1,
            "status": "finished",
            "run_id": f"{task}-{n}-s{seed}",
            "task": task,
            "created": f"2026-01-01T00:00:{n:02d}+00:00",
            "seed": seed,
            "scale": config["scale"]["name"],
            "commit": "c0ffee",
            "dirty": False,
            "bilm": {"name": "mini", "digest": mini(), "state": "reset", "dtype": "float16", "warm": None}
            if plugged
            else None,
            "data": {
                "name": "local",
                "digest": "d1",
                **{split: {"original": 10, "used": 10} for split in ("train", "dev", "test")},
            },
            "metric": metric,
            "scores": {"dev": scores(dev)} | ({} if test is None else {"test": scores(test)}),
            "seconds": {"layers": 1.0} | ({"fit": 2.0} if trained else {}),
            "layers": {"computed": 0, "read": 10},
            "epochs": 1,
            "best_epoch": 1,
            "curve": [{"epoch": 1, "step": 10, "dev": {metric: dev}}],
            "elmo": {"placement": placement, "mix": config["elmo"]["mix"], "weights": weights},
            "config": config,
        }
        if "ensemble" in other:
            row["elmo"]["weights"] = {}
        row.update(other)
        path = folder / f"{row['run_id']}.json"
        path.write_text(json.dumps(row))
        return path

    return write_row
