import csv
from pathlib import Path

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
