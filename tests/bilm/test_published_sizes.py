from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.bilm.sizes import SIZES

CONF = Path(__file__).parents[2] / "conf"


def options_of(name: str) -> BiLMOptions:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return BiLMOptions.from_json(OmegaConf.to_container(compose("config", [f"bilm={name}"]).bilm.options))


@pytest.mark.parametrize("name", SIZES)
def test_the_sizes_are_those_of_the_configuration(name: str) -> None:
    assert SIZES[name] == options_of(name)


@pytest.mark.parametrize(("name", "millions"), [("small", 13.6), ("medium", 28.0), ("original", 93.6)])
def test_the_published_sizes_have_the_published_number_of_parameters(name: str, millions: float) -> None:
    bilm = BiLM(options_of(name))
    assert round(sum(p.numel() for p in bilm.parameters()) / 1e6, 1) == millions
    assert bilm.n_layers == 3
