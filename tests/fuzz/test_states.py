from pathlib import Path

import pytest

from .states import Resumable, is_resumed


@pytest.mark.parametrize("n", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_a_changed_state_is_refused_in_one_sentence_or_training_goes_on(tmp_path: Path, n: int) -> None:
    one = Resumable(tmp_path)
    assert one.resume(one.state) == one.expected
    found = [is_resumed(one, seed, tmp_path) for seed in range(n)]
    assert not any(found[1::2])  # changed bytes
    assert 0 < sum(found[::2]) < n / 2  # changed by somebody who computed the digest too
