from itertools import islice

import pytest

from .case import REFUSED, is_read
from .texts import KINDS, inputs

CASES = list(islice(inputs(seed=1), 30 * len(KINDS)))


@pytest.mark.parametrize("kind", sorted({case.kind for case in CASES}))
def test_each_file_is_read_as_it_was_written_or_refused_in_one_sentence(tmp_path, kind):
    """What is predicted is what is scored: tokens as they stand in the file, and raw text, are its sentences."""
    for n, case in enumerate(case for case in CASES if case.kind == kind):
        (tmp_path / str(n)).mkdir()
        assert is_read(case, tmp_path / str(n)) == (case.expected != REFUSED), case


def test_a_seed_gives_a_hundred_files_of_each_kind_and_always_the_same():
    first, again = list(inputs(seed=2)), list(inputs(seed=2))
    assert first == again
    assert len(first) == 100 * len(KINDS)
    assert sum(case.expected == REFUSED for case in first) == 200
