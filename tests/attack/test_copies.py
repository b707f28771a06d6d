"""A few hundred damaged copies; ``python -m tests.attack`` makes thousands."""

import pytest

from .copies import attack
from .inputs import INPUTS

N = 25


@pytest.mark.parametrize("kind", INPUTS)
def test_a_damaged_copy_ends_in_a_sentence_or_is_read(kind):
    outcome = attack(kind, range(N))
    assert outcome.defects == []
    assert outcome.counts.total() == N
    assert outcome.counts["refused"] > 0 or kind in ("store", "text")
