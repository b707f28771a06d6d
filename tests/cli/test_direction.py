import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from elmo_tasks.cli.direction import metric_direction
from elmo_tasks.places import CONF

DIRECTIONS = {"ner": "maximize", "sst5": "maximize", "squad": "maximize", "lm": "minimize"}


@pytest.mark.parametrize(("task", "direction"), DIRECTIONS.items())
def test_scores_are_maximised_and_perplexities_minimised(task: str, direction: str) -> None:
    metric = OmegaConf.load(CONF / "task" / f"{task}.yaml").get("metric") or {"_target_": _find_metric(task)}
    assert metric_direction(metric["_target_"]) == direction


def _find_metric(task: str) -> str:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return str(compose("config", [f"task={task}"]).task.metric["_target_"])


@pytest.mark.parametrize(("task", "direction"), DIRECTIONS.items())
def test_the_preset_hands_the_direction_to_optuna(task: str, direction: str) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper", reason="needs the extra optuna")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("config", ["experiment=optuna", f"task={task}"], return_hydra_config=True)
    assert cfg.hydra.sweeper.direction == direction
