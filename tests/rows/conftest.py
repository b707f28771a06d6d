"""A row of each kind, as JSON, with every field."""

import copy
from typing import Any

import pytest

Json = dict[str, Any]

PERPLEXITIES = {"perplexity": 40.0, "forward": 39.0, "backward": 41.0}
MIX = {"s": [0.2, 0.7, 0.1], "gamma": 1.5}

HEADER: Json = {
    "schema": 3,
    "run_id": "snli-local-cpu-input-mini-s1-12345678",
    "kind": "supervised",
    "task": "snli",
    "slug": "local-cpu-input-mini",
    "seed": 1,
    "scale": "cpu",
    "created": "2026-01-01T00:00:00+00:00",
    "bilm": {"name": "mini", "digest": "0123456789abcdef", "state": "reset", "dtype": "float16", "warm": None},
    "commit": "c0ffee00",
    "dirty": False,
    "versions": {"torch": "2.6"},
    "config": {"seed": 1, "bilm": {"name": "mini", "path": None}, "elmo": {"placement": "input", "lambda": 0.001}},
}
MEASURED: Json = {
    "status": "finished",
    "data": {
        "name": "local",
        "digest": "0123456789abcdef",
        "test_digest": None,
        "items": {"train": {"original": 10, "used": 9}, "dev": {"original": 5, "used": 5}},
        "left_out": {"no gold label": 2},
        "word_coverage": 0.99,
        "word_vectors": None,
    },
    "metric": {
        "name": "accuracy",
        "higher_is_better": True,
        "lower": 0.0,
        "upper": 100.0,
        "reported": ["accuracy"],
    },
    "scores": {"dev": {"accuracy": 60.0}},
    "files": {"x/dev/predictions.json": "ab" * 32},
    "weights": "cd" * 32,
    "parameters": 10,
    "training": {
        "epochs": 3,
        "best_epoch": 2,
        "max_epochs": 10,
        "max_steps": None,
        "ended": "patience",
        "converged": True,
        "resumed_after": [4],
        "code": [{"commit": "c0ffee", "dirty": False}, {"commit": None, "dirty": None}],
        "curve": [
            {
                "epoch": 2,
                "step": 20,
                "dev": {"accuracy": 60.0},
                "seconds": 1.5,
                "train_loss": None,
                "elmo": {"input": MIX},
            }
        ],
    },
    "elmo": {"placement": "input", "mix": "scalar", "weights": {"input": MIX}},
    "layers": {"computed": 5, "read": 6},
    "seconds": {"layers": 1.0, "fit": 2.0, "score": 3.0},
    "device": "cpu",
    "processes": 1,
    "threads": 1,
}


@pytest.fixture
def supervised() -> Json:
    return copy.deepcopy(HEADER | MEASURED)


@pytest.fixture
def failed() -> Json:
    return copy.deepcopy(HEADER | {"status": "failed", "error": "RuntimeError: out of memory"})


@pytest.fixture
def language_model(supervised: Json) -> Json:
    row = supervised | {"kind": "language_model", "task": "lm", "bilm": None, "elmo": None}
    row["metric"] = {
        "name": "perplexity",
        "higher_is_better": False,
        "lower": 1.0,
        "upper": None,
        "reported": ["perplexity", "forward", "backward"],
    }
    row["scores"] = {"dev": dict(PERPLEXITIES)}
    row["training"]["curve"][0] |= {"dev": dict(PERPLEXITIES), "elmo": {}}
    row["data"] |= {"items": {}, "word_coverage": None}
    row["language_model"] = {
        "text": "snli",
        "positions": {"train": 100, "dev": 10},
        "vocabulary": 50,
        "unknown": 0.1,
        "initial": {"name": "mini", "digest": "0123456789abcdef", "softmax": "restored"},
        "before": {name: 2 * value for name, value in PERPLEXITIES.items()},
        "exported": {"folder": "runs/x/bilm", "digest": "0123456789abcdef"},
    }
    return row


@pytest.fixture
def ensemble(supervised: Json) -> Json:
    row = supervised | {"kind": "ensemble", "seed": None, "training": None, "weights": None}
    row["elmo"]["weights"] = {}
    row["ensemble"] = {"members": [{"run_id": f"snli-s{seed}", "seed": seed, "weights": "ef" * 32} for seed in (2, 1)]}
    return row


@pytest.fixture
def sense_probe(supervised: Json) -> Json:
    row = supervised | {"kind": "sense_probe", "task": "wsd", "training": None, "weights": None}
    row["elmo"] = {"placement": "input", "mix": "layer_1", "weights": {}}
    row["sense_probe"] = {"instances": {"dev": {"semeval2007": 455}}, "first_sense": {"dev": 20}}
    return row
