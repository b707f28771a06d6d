"""The paper's sizes, rates and schedules, which ``scale=paper`` is to have; the README lists where they are others."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from elmo_tasks.config.compose import validate

CONF = Path(__file__).parents[2] / "conf"

ADAM = {"_target_": "torch.optim.Adam", "fused": True}
ADADELTA = {"_target_": "torch.optim.Adadelta", "lr": 1.0, "rho": 0.95}

SETTINGS: dict[str, dict[str, Any]] = {
    "sst5": {
        "model": {
            "pre_encode": 300,
            "hidden": 300,
            "classifier": [1200, 600],
            "embedding_dropout": 0.25,
            "pre_encode_dropout": 0.25,
            "integrator_dropout": 0.1,
            "classifier_dropout": [0.2, 0.3],
        },
        "reader": {"phrases": True, "min_phrase_tokens": 1, "unescape": True},
        "words": {"unknown": "normal", "unit_length": False, "paper_dim": 300, "any_dim": False},
        "update_words": False,
        "elmo": {"placement": "both", "lambda": 0.001, "dropout": 0.0},
        "optimizer": {**ADAM, "lr": 0.001},
        "training": {"batch_size": 100, "grad_norm": 5.0, "schedule": None, "average": None},
        "epochs": {"max_epochs": 40, "patience": 5},
    },
    "ner": {
        "model": {"char_dim": 16, "char_filters": 128, "char_width": 3, "hidden": [200, 200], "dropout": 0.5},
        "reader": {},
        "words": {"unknown": "normal", "unit_length": False, "paper_dim": 50, "any_dim": False},
        "update_words": True,
        "elmo": {"placement": "input", "lambda": 0.1, "dropout": 0.0},
        "optimizer": {**ADAM, "lr": 0.001},
        "training": {"batch_size": 64, "grad_norm": 5.0, "schedule": None, "average": None},
        "epochs": {"max_epochs": 75, "patience": 25},
    },
    "snli": {
        "model": {"hidden": 300, "dropout": 0.5, "attention_dropout": 0.0},
        "reader": {},
        "words": {"unknown": "normal", "unit_length": False, "paper_dim": 300, "any_dim": False},
        "update_words": False,
        "elmo": {"placement": "both", "lambda": 0.001, "dropout": 0.0},
        "optimizer": {**ADAM, "lr": 0.0004, "weight_decay": 0.0},
        "training": {"batch_size": 32, "grad_norm": 10.0, "schedule": "halve", "average": None},
        "epochs": {"max_epochs": 75, "patience": 5},
    },
    "squad": {
        "model": {
            "char_dim": 20,
            "char_filters": 100,
            "char_width": 5,
            "char_dropout": 0.2,
            "hidden": 90,
            "linear": 180,
            "dropout": 0.2,
            "max_answer_tokens": 17,
        },
        "reader": {"max_tokens": 1000, "too_long": "error", "bad_answers": "error"},
        "words": {"unknown": "zeros", "unit_length": False, "paper_dim": 300, "any_dim": False},
        "update_words": False,
        "elmo": {"placement": "both", "lambda": 0, "dropout": 0.5},
        "optimizer": {**ADADELTA, "eps": 1e-8},
        "training": {"batch_size": 45, "grad_norm": None, "schedule": None, "average": 0.999},
        "epochs": {"max_epochs": 24, "patience": None},
    },
    "srl": {
        "model": {"indicator_dim": 100, "hidden": 300, "n_layers": 8, "dropout": 0.1},
        "reader": {"max_training_tokens": 100},
        "words": {"unknown": "normal", "unit_length": False, "paper_dim": 100, "any_dim": False},
        "update_words": True,
        "elmo": {"placement": "input", "lambda": 0.001, "dropout": 0.1},
        "optimizer": ADADELTA,
        "training": {"batch_size": 30, "grad_norm": 1.0, "schedule": None, "average": None},
        "epochs": {"max_epochs": 500, "patience": 200},
    },
    "coref": {
        "model": {
            "char_dim": 8,
            "char_filters": 50,
            "char_widths": [3, 4, 5],
            "cell": "lstm",
            "hidden": 200,
            "ffnn": 150,
            "feature_dim": 20,
            "max_span_width": 10,
            "spans_per_word": 0.4,
            "max_antecedents": 250,
            "dropout": 0.2,
            "lexical_dropout": 0.5,
        },
        "reader": {"max_training_sentences": 50, "ontonotes": False},
        "words": {"unknown": "zeros", "unit_length": True, "paper_dim": 300, "any_dim": False},
        "update_words": False,
        "elmo": {"placement": "input", "lambda": 0, "dropout": 0.5},
        "optimizer": {**ADAM, "lr": 0.001},
        "training": {"batch_size": 1, "grad_norm": 5.0, "schedule": "decay", "average": None},
        "epochs": {"max_epochs": 150, "patience": 10},
    },
}


@pytest.mark.parametrize("task", SETTINGS)
def test_scale_paper_has_the_papers_sizes_rates_and_schedules(task: str) -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = validate(compose("config", [f"task={task}", "scale=paper", "data=local", "data.root=DIR"])).to_json()
    of_task, expected = cfg["task"], SETTINGS[task]
    constructed = {"_target_", "_partial_", "encoding"}
    assert {key: value for key, value in of_task["model"].items() if key not in constructed} == expected["model"]
    of_reader = {key: value for key, value in of_task["reader"].items() if value is not None}
    assert {key: value for key, value in of_reader.items() if key not in constructed} == expected["reader"]
    assert {key: cfg["words"][key] for key in expected["words"]} == expected["words"]
    assert of_task["update_words"] is expected["update_words"]
    assert of_task["optimizer"] == {"_partial_": True, **expected["optimizer"]}
    assert {key: of_task["training"][key] for key in expected["training"]} == expected["training"]
    assert {key: cfg["trainer"][key] for key in expected["epochs"]} == expected["epochs"]
    of_elmo = {"mix": "scalar", "gamma": "learned", "layer_norm": False, **expected["elmo"]}
    assert {key: cfg["elmo"][key] for key in of_elmo} == of_elmo
