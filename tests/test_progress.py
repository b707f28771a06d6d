import math
import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from elmo_tasks import progress
from elmo_tasks.progress import counting, say
from elmo_tasks.training.module import TaskModule
from elmo_tasks.training.progress import Display, Moment, ShowProgress


def trainer_at(epoch: int, step: int, *, dev: float | None = None, per_epoch: float = 10) -> Any:
    metrics = {"train/loss": torch.tensor(1.25)} | ({} if dev is None else {"dev/f1": torch.tensor(dev)})
    return SimpleNamespace(
        current_epoch=epoch,
        global_step=step,
        max_epochs=4,
        num_training_batches=per_epoch,
        callback_metrics=metrics,
    )


def make_module(higher_is_better: bool = True) -> TaskModule:
    module = TaskModule.__new__(TaskModule)
    torch.nn.Module.__init__(module)
    module.metric = SimpleNamespace(name="f1", higher_is_better=higher_is_better)  # type: ignore[assignment]
    return module


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    shown = capsys.readouterr()
    assert not shown.out
    assert "\x1b" not in shown.err
    assert "\r" not in shown.err
    return shown.err.splitlines()


def test_each_dev_score_is_a_line_with_the_best_so_far(capsys, monkeypatch) -> None:
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr("elmo_tasks.training.progress.time.monotonic", lambda: float(next(clock)))
    shown, module = ShowProgress("ner input"), make_module()
    shown.on_train_start(trainer_at(0, 0), module)
    for epoch, dev in enumerate([70.0, 76.5, 75.0]):
        for batch in range(10):
            shown.on_train_batch_end(trainer_at(epoch, 10 * epoch + batch + 1), module, None, None, batch)
        shown.on_validation_end(trainer_at(epoch, 10 * epoch + 10, dev=dev), module)
    found = lines(capsys)
    assert len(found) == 3
    assert found[0].startswith("ner input: epoch 1 of 4  loss 1.250  dev f1 70.00  best 70.00 (epoch 1)  at most ")
    assert "dev f1 76.50  best 76.50 (epoch 2)" in found[1]
    assert "dev f1 75.00  best 76.50 (epoch 2)" in found[2]


def test_the_time_left_is_that_of_all_updates(monkeypatch, capsys) -> None:
    now = [100.0]
    monkeypatch.setattr("elmo_tasks.training.progress.time.monotonic", lambda: now[0])
    shown = Display("lm", tokens_per_batch=50)
    shown.start(5, 25)
    now[0] = 110.0  # five updates in ten seconds, fifteen are left
    shown.scored(Moment(10, 25, 1, 4, 2.0), "perplexity 3.00", "3.00", 1)
    assert lines(capsys)[0].endswith("25 tokens/s  at most 30 s left")
    shown.scored(Moment(0, 25, 0, 4, None), "perplexity 9.00", "9.00", 0)  # of the initial weights
    assert not lines(capsys)
    assert ShowProgress("ner")._total(trainer_at(0, 0, per_epoch=math.inf)) is None
    assert ShowProgress("ner")._total(trainer_at(0, 0)) == 40
    assert ShowProgress("ner", max_steps=25)._total(trainer_at(0, 0)) == 25


def test_a_perplexity_is_best_where_it_is_lowest(capsys) -> None:
    shown, module = ShowProgress("lm"), make_module(higher_is_better=False)
    shown.on_train_start(trainer_at(0, 0), module)
    for epoch, dev in enumerate([90.0, 80.0, 85.0]):
        shown.on_validation_end(trainer_at(epoch, epoch + 1, dev=dev), module)
    assert "best 80.00 (epoch 2)" in lines(capsys)[-1]


def test_the_best_survives_a_resumed_run_and_other_processes_are_silent(capsys) -> None:
    first, second, module = ShowProgress("ner"), ShowProgress("ner"), make_module()
    first.on_train_start(trainer_at(0, 0), module)
    first.on_validation_end(trainer_at(0, 10, dev=80.0), module)
    second.load_state_dict(first.state_dict())
    second.on_train_start(trainer_at(1, 10), module)
    second.on_validation_end(trainer_at(1, 20, dev=70.0), module)
    assert "best 80.00 (epoch 1)" in lines(capsys)[-1]
    second.disable()
    second.on_validation_end(trainer_at(2, 30, dev=70.0), module)
    assert not lines(capsys)


def test_in_a_terminal_one_line_is_drawn_and_removed(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.setattr("elmo_tasks.training.progress._PAUSE", 0.0)
    assert progress.in_terminal()
    shown, module = ShowProgress("ner input"), make_module()
    shown.on_train_start(trainer_at(0, 0), module)
    shown.on_train_batch_end(trainer_at(0, 3), module, None, None, 2)
    shown.on_validation_end(trainer_at(0, 10, dev=70.0), module)
    shown.on_train_batch_end(trainer_at(1, 11), module, None, None, 0)
    shown.display._live.refresh()
    shown.on_train_end(trainer_at(3, 40), module)
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "ner input" in drawn
    assert "epoch 2 of 4  loss 1.250  dev f1 70.00  best 70.00 (epoch 1)" in drawn
    assert not [line for line in drawn.split("\r") if line.startswith("ner input: epoch")]


def test_counted_work_ends_in_one_line(capsys) -> None:
    with counting("biLM layers", 100) as counter:
        counter.update(60)
        counter.update(40)
    (line,) = lines(capsys)
    assert re.fullmatch(r"biLM layers: 100 tokens in \d+\.\d s", line)
    with counting("biLM layers", 100, wanted=False) as counter:
        counter.update(60)
    assert not lines(capsys)


def test_counted_work_is_a_live_line_in_a_terminal(capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with counting("biLM layers", 100) as counter:
        counter.update(60)
        counter._live.refresh()  # type: ignore[attr-defined]
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "60 of 100 tokens" in drawn
    assert " in 0.0 s" not in drawn


def test_brackets_in_a_line_stay(capsys) -> None:
    say("task.files=[a, b] in [bold]")
    assert lines(capsys) == ["task.files=[a, b] in [bold]"]
