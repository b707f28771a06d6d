from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.options import BiLMOptions

CONF = Path(__file__).parents[2] / "conf"


@pytest.mark.parametrize(("name", "millions"), [("small", 13.6), ("medium", 28.0), ("original", 93.6)])
def test_the_published_sizes_have_the_published_number_of_parameters(name: str, millions: float) -> None:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        options = OmegaConf.to_container(compose("config", [f"bilm={name}"]).bilm.options)
    bilm = BiLM(BiLMOptions.from_json(options))
    assert round(sum(p.numel() for p in bilm.parameters()) / 1e6, 1) == millions
    assert bilm.n_layers == 3
