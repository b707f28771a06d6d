from pathlib import Path
from typing import Any

import pytest
from rows_as_json import load

from elmo_tasks.runs import run as train
from elmo_tasks.training.budget import budget_note


@pytest.mark.parametrize(
    ("epochs", "patience", "short"),
    [(2, 8, True), (8, 8, True), (9, 8, False), (1, None, False), (None, None, False)],
)
def test_a_budget_is_short_if_it_ends_before_patience_can(epochs: Any, patience: Any, short: bool) -> None:
    note = budget_note({"max_epochs": epochs, "patience": patience})
    assert bool(note) is short
    if short:
        assert f"trainer.max_epochs={epochs} is not above trainer.patience={patience}: " in note


@pytest.mark.parametrize("interval", ["null", "2"])
def test_patience_counts_epochs_however_often_dev_is_scored(composed: Any, tmp_path: Path, interval: str) -> None:
    own = ["trainer.max_epochs=9", "trainer.patience=2", f"trainer.val_check_interval={interval}"]
    train.run(composed("elmo.placement=none", *own, "task.optimizer.lr=0.0"))  # the first score is the best
    (row,) = load(tmp_path / "outputs" / "rows")
    training = row["training"]
    assert (training["best_epoch"], training["epochs"], training["ended"]) == (1, 3, "patience")
    scores_per_epoch = len(training["curve"]) / 3
    assert scores_per_epoch == 1 if interval == "null" else scores_per_epoch > 2


def test_a_run_says_so_in_one_sentence_before_it_begins(composed: Any, capsys: Any) -> None:
    train.run(composed("elmo.placement=none"))
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: {budget_note({'max_epochs': 2, 'patience': 8, 'val_check_interval': None})}"]


@pytest.mark.parametrize(
    ("budget", "ended"),
    [
        (["trainer.max_epochs=6"], "max_epochs"),
        (["trainer.max_steps=3", "trainer.val_check_interval=1"], "max_steps"),
        (["trainer.max_steps=4", "trainer.max_epochs=9", "trainer.patience=1"], "max_steps"),  # cut off in epoch 2
    ],
)
def test_a_run_that_its_budget_ended_had_not_converged(
    composed: Any, tmp_path: Path, budget: list[str], ended: str
) -> None:
    own = ["task=sst5", "elmo.placement=none", "task.training.batch_size=200"]  # three updates an epoch
    train.run(composed(*own, "task.optimizer.lr=0.0", *budget))  # the first score is the best
    (row,) = load(tmp_path / "outputs" / "rows")
    assert (row["training"]["ended"], row["training"]["converged"]) == (ended, False)
