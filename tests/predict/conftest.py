"""Small finished runs of every task, made once."""

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from elmo_tasks.cli.run import run_composed
from elmo_tasks.places import CONF


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``finished("ner")``: the folder of a run of one epoch on the sample, with the bundled biLM."""
    made: dict[tuple[str, ...], Path] = {}

    def run(task: str, *overrides: str) -> Path:
        key = (task, *overrides)
        if key not in made:
            outputs = tmp_path_factory.mktemp(task)
            small = [f"task={task}", f"paths.outputs={outputs}", "trainer.max_epochs=1", "trainer.progress=false"]
            with initialize_config_dir(str(CONF), version_base="1.3"):
                cfg: Any = compose("config", [*small, "trainer.accelerator=cpu", "logger=none", *overrides])
            with redirect_stdout(StringIO()):
                run_composed(cfg)
            (made[key],) = (path for path in (outputs / "runs").iterdir() if path.is_dir())
        return made[key]

    return run
