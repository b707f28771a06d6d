"""Whole runs in this process: the bundled sample, a tiny biLM by path, two epochs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

REPO = Path(__file__).parents[2]

Compose = Callable[..., DictConfig]


@pytest.fixture
def composed(tmp_path: Path, tiny_bilm: Any) -> Compose:
    """``composed("task=ner", ...)``: a configuration that runs in seconds and writes below tmp_path."""
    tiny_bilm.save(tmp_path / "bilm")

    def compose_with(*overrides: str) -> DictConfig:
        small = [
            f"paths.outputs={tmp_path / 'outputs'}",
            *([] if "task=lm" in overrides else [f"bilm.path={tmp_path / 'bilm'}", "data.fraction=0.1"]),
            "words=random",
            "trainer.max_epochs=2",
            "trainer.accelerator=cpu",
            "trainer.progress=false",
            "logger=none",
        ]
        with initialize_config_dir(str(REPO / "conf"), version_base="1.3"):
            return compose("config", [*small, *overrides])

    return compose_with
