import re
from collections import Counter
from itertools import islice

import pytest

from .case import REFUSED, Case, read
from .columns import KINDS, inputs

CASES = list(islice(inputs(seed=1), 700))


@pytest.mark.parametrize("kind", sorted({case.kind for case in CASES}))
def test_each_file_is_read_as_it_was_written_or_refused_in_one_sentence(tmp_path, kind):
    for n, case in enumerate(case for case in CASES if case.kind == kind):
        (tmp_path / str(n)).mkdir()
        assert read(case, tmp_path / str(n)) == case.expected, case


def test_the_keys_that_a_refusal_names_read_the_words(tmp_path):
    refused = [case for case in CASES if case.expected == REFUSED and case.kind in ("ner_numbered", "pos_numbered")]
    right = {case.text: case.expected for case in CASES if case.kind.endswith("_numbered_read")}
    read_again = Counter()
    for n, case in enumerate(refused):
        (tmp_path / str(n)).mkdir()
        assert read(case, tmp_path / str(n)) == REFUSED
        keys = {key: int(value) for key, value in re.findall(r"task\.reader\.(\w+)=(\d+)", case.said)}
        (tmp_path / f"{n}-again").mkdir()
        found = read(Case(case.kind, case.text, case.task, None, keys), tmp_path / f"{n}-again")
        if found == REFUSED:  # the last column is not that of the entities, which the first sentence said, too
            assert case.kind == "ner_numbered"
            assert "tag_column=N" in case.said
            continue
        read_again[case.kind] += 1
        assert [words for words, _ in found] == [words for words, _ in right[case.text]]
    assert min(read_again.values()) > 10


def test_a_seed_gives_a_hundred_files_of_each_kind_and_always_the_same():
    first, again = list(inputs(seed=2)), list(inputs(seed=2))
    assert first == again
    assert len(first) >= 100 * len(KINDS)
    assert [case.text for case in first[:5]] != [case.text for case in CASES[:5]]
