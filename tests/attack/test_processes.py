"""One of each attack on a process; ``python -m tests.attack`` makes hundreds."""

import random
from pathlib import Path

import pytest

from .processes import Attacks, Reference, interrupt, kill, start_twice


@pytest.mark.parametrize("name", ["store", pytest.param("force", marks=pytest.mark.slow)])
def test_what_is_killed_goes_on_to_the_same_end(name: str, tmp_path: Path) -> None:
    attacks = Attacks()
    kill(name, Reference(name, tmp_path), tmp_path / "attacked", 2, random.Random(0), attacks)
    assert attacks.defects == []
    assert attacks.counts[f"resumed: {name}"] == 1


@pytest.mark.slow
def test_a_run_that_is_interrupted_and_one_that_is_started_twice(tmp_path: Path) -> None:
    attacks, reference = Attacks(), Reference("training", tmp_path)
    interrupt("training", reference, tmp_path / "interrupted", random.Random(1), attacks)
    start_twice(reference, tmp_path / "twice", True, random.Random(1), attacks)
    assert attacks.defects == []
