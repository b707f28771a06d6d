from itertools import islice

import pytest

from .case import READERS, REFUSED, read
from .texts import KINDS, inputs

CASES = list(islice(inputs(seed=1), 30 * len(KINDS)))


@pytest.mark.parametrize("kind", sorted({case.kind for case in CASES}))
def test_each_file_is_read_as_it_was_written_or_refused_in_one_sentence(tmp_path, kind):
    for n, case in enumerate(case for case in CASES if case.kind == kind):
        (tmp_path / str(n)).mkdir()
        assert read(case, tmp_path / str(n)) == case.expected, case


@pytest.mark.parametrize("kind", sorted({case.kind for case in CASES if case.inputs}))
def test_what_is_predicted_is_what_is_scored(tmp_path, kind):
    """The tokens as they stand in the file, and the raw text, are the same sentences to the model as the file's."""
    for n, case in enumerate(case for case in CASES if case.kind == kind and case.inputs):
        (tmp_path / "file").write_bytes(case.text.encode())
        reader = READERS[case.task](**case.keys)
        if case.task == "srl":
            reader.restore({"labels": [], "verbs": []})
        scored = [reader.texts(item) for item in reader.read_file(tmp_path / "file", "test")]
        predicted = [reader.texts(reader.from_json(fields, "x")) for fields in case.inputs]
        assert predicted == scored * (len(predicted) // len(scored)), (n, case)
        assert len(predicted) % len(scored) == 0


def test_a_seed_gives_a_hundred_files_of_each_kind_and_always_the_same():
    first, again = list(inputs(seed=2)), list(inputs(seed=2))
    assert first == again
    assert len(first) == 100 * len(KINDS)
    assert sum(case.expected == REFUSED for case in first) == 200
