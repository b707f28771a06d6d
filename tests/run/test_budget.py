from typing import Any

import pytest

from elmo_tasks.runs import run as train
from elmo_tasks.training.budget import budget_note


@pytest.mark.parametrize(
    ("epochs", "patience", "short"),
    [(2, 8, True), (8, 8, True), (9, 8, False), (1, None, False), (None, None, False)],
)
def test_a_budget_is_short_if_it_ends_before_patience_can(epochs: Any, patience: Any, short: bool) -> None:
    note = budget_note({"max_epochs": epochs, "patience": patience, "val_check_interval": None})
    assert bool(note) is short
    if short:
        assert f"trainer.max_epochs={epochs} is not above trainer.patience={patience}: " in note


def test_patience_that_counts_scores_within_an_epoch_is_not_compared_with_epochs() -> None:
    assert budget_note({"max_epochs": 2, "patience": 8, "val_check_interval": 10}) == ""


def test_a_run_says_so_in_one_sentence_before_it_begins(composed: Any, capsys: Any) -> None:
    train.run(composed("elmo.placement=none"))
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert notes == [f"note: {budget_note({'max_epochs': 2, 'patience': 8, 'val_check_interval': None})}"]
