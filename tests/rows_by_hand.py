"""Rows by hand: every number in them is chosen, so that a reader can check a table or a figure without a run."""

import copy
import json
from typing import Any

from elmo_tasks.rows.io import from_json
from elmo_tasks.rows.schema import Row

Json = dict[str, Any]
PLACES: dict[str, list[str]] = {"none": [], "both": ["input", "output"], "input": ["input"], "output": ["output"]}
REPORTED = {
    "sst5": ["accuracy"],
    "snli": ["accuracy"],
    "pos": ["accuracy"],
    "squad": ["f1", "exact_match"],
    "coref": ["f1", "muc_f1", "b_cubed_f1", "ceaf_e_f1"],
    "lm": ["perplexity", "forward", "backward"],
}


def digest(name: str) -> str:
    """Hexadecimal digits for a name that a test made up."""
    return name if len(name) >= 8 and set(name) <= set("0123456789abcdef") else name.encode().hex().ljust(16, "0")


def metric(task: str) -> Json:
    is_lm = task == "lm"
    names = REPORTED.get(task, ["f1"])
    bounds = {"lower": 1.0, "upper": None} if is_lm else {"lower": 0.0, "upper": 100.0}
    return {"name": names[0], "higher_is_better": not is_lm, **bounds, "reported": names}


def row_json(config: Json, *, run_id: str, seed: int, dev: float | list[float], test: float | None = None) -> Json:
    """A finished run of a configuration, with one dev score an epoch; it converged."""
    task, placement = config["task"]["name"], config["elmo"]["placement"]
    kind = config["task"].get("kind", "supervised")
    names = metric(task)["reported"]
    curve = dev if isinstance(dev, list) else [dev]
    weights = {place: {"s": [0.2, 0.7, 0.1], "gamma": 1.5} for place in PLACES[placement]}
    points = [
        {
            "epoch": i,
            "step": 10 * i,
            "dev": dict.fromkeys(names, value),
            "seconds": 1.0,
            "train_loss": 1.5,
            "elmo": weights,
        }
        for i, value in enumerate(curve, start=1)
    ]
    training = {
        "epochs": len(curve),
        "best_epoch": 1,
        "max_epochs": 10,
        "max_steps": None,
        "ended": "patience",
        "converged": True,
        "resumed_after": [],
        "curve": points,
    }
    trained = kind != "sense_probe"
    scores = {"dev": max(curve)} | ({} if test is None else {"test": test})
    row = {
        "schema": 3,
        "status": "finished",
        "run_id": run_id,
        "kind": kind,
        "task": task,
        "slug": run_id,
        "seed": seed,
        "scale": "cpu",
        "created": "2026-01-01T00:00:00+00:00",
        "commit": "c0ffee",
        "dirty": False,
        "versions": {},
        "metric": metric(task),
        "scores": {split: dict.fromkeys(names, value) for split, value in scores.items()},
        "data": {
            "name": "local",
            "digest": digest("d1"),
            "test_digest": digest("d2") if "test" in scores else None,
            "items": {split: {"original": 10, "used": 10} for split in ("train", "dev", "test")},
            "left_out": {},
            "word_coverage": None,
            "word_vectors": None,
        },
        "bilm": None if placement == "none" else bilm(digest("b1")),
        "files": {},
        "weights": None,
        "parameters": 7,
        "training": training if trained else None,
        "elmo": {"placement": placement, "mix": config["elmo"]["mix"], "weights": weights if trained else {}},
        "layers": {"computed": 0, "read": 5000},
        "seconds": {"layers": 10.0, "fit": 60.0 if trained else None, "score": 1.0},
        "device": "cpu",
        "processes": 1,
        "threads": 1,
        "language_model": None,
        "ensemble": None,
        "sense_probe": None if trained else {"instances": {}, "first_sense": {}},
        "config": config,
    }
    return json.loads(json.dumps(row))  # parts are not the same objects


def bilm(name: str) -> Json:
    return {"name": "mini", "digest": digest(name), "state": "reset", "dtype": "float16", "warm": None}


def language_model(row: Json, *, before: float | None = None, after: float, folder: str, exported: str) -> Json:
    """A training of a biLM out of a row of a task that is called ``lm``."""
    scores = {"perplexity": after, "forward": after - 1, "backward": after + 1}
    row["training"]["curve"] = [row["training"]["curve"][0] | {"dev": scores, "elmo": {}}]
    row |= {"kind": "language_model", "elmo": None, "bilm": None, "scores": {"dev": scores}}
    row["data"]["items"] = {}
    row["config"].setdefault("bilm", {}).setdefault("name", "mini")
    row["language_model"] = {
        "text": "snli",
        "positions": {"train": 5000, "dev": 50},
        "vocabulary": 2000,
        "unknown": 0.1,
        "initial": None if before is None else {"name": "mini", "digest": digest("s"), "softmax": "restored"},
        "before": None if before is None else {"perplexity": before, "forward": before, "backward": before},
        "exported": {"folder": folder, "digest": digest(exported)},
    }
    return row


def ensemble(row: Json, seeds: list[int], ids: list[str] | None = None) -> Json:
    """An ensemble of finished runs."""
    names = ids or [f"member-{seed}" for seed in seeds]
    row |= {"kind": "ensemble", "seed": None, "training": None}
    row["seconds"]["fit"] = None
    row["elmo"]["weights"] = {}
    row["ensemble"] = {
        "members": [{"run_id": name, "seed": seed, "weights": None} for name, seed in zip(names, seeds, strict=True)]
    }
    return row


def changed(row: Json, changes: Json) -> Json:
    """A copy with other values at dotted keys."""
    row = copy.deepcopy(row)
    for path, value in changes.items():
        *folders, last = path.split(".")
        part: Any = row
        for name in folders:
            part = part[int(name)] if isinstance(part, list) else part[name]
        part[last] = value
    return row


def finished(row: Json) -> Row:
    found = from_json(row, row["run_id"])
    assert isinstance(found, Row)
    return found
