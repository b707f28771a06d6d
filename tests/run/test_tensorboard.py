from pathlib import Path

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.runs.run import run


def test_scores_learning_rate_and_layer_weights_are_logged(composed, tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard")
    run(composed("task=ner", "logger=tensorboard"))
    (folder,) = (tmp_path / "outputs" / "runs").glob("ner-*/tensorboard")
    events = reader.EventAccumulator(str(folder))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    assert {"dev/f1", "train/loss", "train/lr", "elmo/input/gamma", *(f"elmo/input/s_{k}" for k in range(3))} <= tags
    assert [point.value for point in events.Scalars("train/lr")] == pytest.approx([0.002, 0.002])


def test_without_tensorboard_the_extra_is_named(composed, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError

    monkeypatch.setattr("pytorch_lightning.loggers.TensorBoardLogger", missing)
    with pytest.raises(
        UserError, match=r"^logger=tensorboard needs the extra `tensorboard`: pip install -e '\.\[tensorboard\]'"
    ):
        run(composed("task=ner", "logger=tensorboard"))
