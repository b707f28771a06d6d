"""The figures with which bilm-tf trained the paper's biLM, and those of the bundled one."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from elmo_tasks.config.compose import validate

REPO = Path(__file__).parents[2]


def compose_task(*overrides: str) -> dict[str, Any]:
    with initialize_config_dir(str(REPO / "conf"), version_base="1.3"):
        task: dict[str, Any] = validate(
            compose("config", ["task=lm", "data=local", "data.root=DIR", *overrides])
        ).to_json()["task"]
    return task


SIZES = {
    "paper": ({"batch_size": 3 * 128, "vocabulary_size": 793471}, {"n_samples": 8192, "forget": 0}, 10),
    "cpu": ({"batch_size": 128, "vocabulary_size": 50000}, {"n_samples": 2048, "forget": 0.02}, 1),
}


@pytest.mark.parametrize("scale", SIZES)
def test_a_scale_trains_with_its_sizes(scale: str) -> None:
    data, model, n_epochs = SIZES[scale]
    task = compose_task(f"scale={scale}")
    assert task["data"].items() >= data.items()
    assert task["model"].items() >= model.items()
    assert task["training"]["max_epochs"] == n_epochs


@pytest.mark.parametrize("scale", SIZES)
def test_both_scales_train_as_the_paper_s_code_does(scale: str) -> None:
    task = compose_task(f"scale={scale}")
    assert (task["data"]["window"], task["model"]["dropout"], task["training"]["grad_norm"]) == (20, 0.1, 10)
    assert task["optimizer"] == {
        "_target_": "torch.optim.Adagrad",
        "_partial_": True,
        "lr": 0.2,
        "initial_accumulator_value": 1.0,
    }
    assert (task["training"]["schedule"], task["training"]["average"]) == (None, None)


def test_the_preset_for_a_short_budget_changes_optimizer_schedule_and_batches_only() -> None:
    usual, preset = compose_task(), compose_task("experiment=bilm")
    changed = {key for key in usual if usual[key] != preset[key]}
    assert changed == {"optimizer", "data", "training"}
    assert preset["optimizer"] == {"_target_": "torch.optim.Adam", "_partial_": True, "lr": 0.002, "fused": True}
    assert preset["data"] == {**usual["data"], "batch_size": 512}
    assert preset["training"] == {**usual["training"], "max_epochs": 5, "schedule": "linear"}


@pytest.mark.parametrize("scale", SIZES)
def test_a_task_s_text_is_read_once_in_small_batches(scale: str) -> None:
    task = compose_task(f"scale={scale}", "task.lm.text=sst5", "task.lm.init=mini")
    assert (task["data"]["batch_size"], task["training"]["max_epochs"], task["lm"]["softmax_epochs"]) == (32, 1, 1)
