import pytest

from elmo_tasks.rows.convergence import has_converged


@pytest.mark.parametrize(
    ("ended", "best_epoch", "best_step", "max_epochs", "max_steps", "expected"),
    [
        ("patience", 40, 400, 50, None, True),  # at four fifths of the budget
        ("patience", 41, 410, 50, None, False),
        ("max_epochs", 1, 10, 50, None, False),  # nobody knows what would have come
        ("max_steps", 1, 10, None, 100, False),
        ("diverged", 1, 10, 50, None, False),
        ("patience", 1, 81, None, 100, False),
        ("patience", 1, 80, 50, 100, True),
        ("patience", 7, 70, None, None, True),
    ],
)
def test_the_last_fifth_of_the_budget_is_still_rising(
    ended: str, best_epoch: int, best_step: int, max_epochs: int | None, max_steps: int | None, expected: bool
) -> None:
    found = has_converged(
        ended,  # type: ignore[arg-type]
        best_epoch=best_epoch,
        best_step=best_step,
        max_epochs=max_epochs,
        max_steps=max_steps,
    )
    assert found is expected
