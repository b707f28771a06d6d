import csv
from pathlib import Path

from torch import Tensor

from elmo_tasks.rows.parts import Code
from elmo_tasks.training.checkpoint import ResumeCheckpoint
from elmo_tasks.training.curves import NAME, Curves


def test_curves_go_on_after_a_kill_that_came_before_the_resumed_file_was_written(tmp_path: Path) -> None:
    first = Curves(tmp_path)
    first.log_metrics({"loss": 0.5}, step=0)
    saved = first.lines()
    killed = Curves(tmp_path)
    _ = killed.experiment  # from here on Lightning has removed the first one's file
    last = Curves(tmp_path)
    last.resume(saved)
    last.log_metrics({"loss": 0.25}, step=1)
    last.save()
    with (tmp_path / NAME).open(encoding="utf-8") as file:
        assert [(line["step"], line["loss"]) for line in csv.DictReader(file)] == [("0", "0.5"), ("1", "0.25")]


def test_the_saved_lines_are_no_part_of_the_header_of_the_state(tmp_path: Path) -> None:
    lines = [{"step": str(step), "loss": "0.5", "name": "Zürich"} for step in range(1000)]
    saved = ResumeCheckpoint(tmp_path / "state", 60, Code(commit=None, dirty=None))
    saved._curves = lines
    state = saved.state_dict()
    assert isinstance(state["logged"], Tensor)
    for logged in (state["logged"], lines):  # a list in states of earlier versions
        restored = ResumeCheckpoint(tmp_path / "state", 60, Code(commit=None, dirty=None))
        restored.load_state_dict(state | {"logged": logged})
        assert restored.state_dict()["logged"].equal(state["logged"])
