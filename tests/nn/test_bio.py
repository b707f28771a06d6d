import itertools
import re

import pytest
import torch

from elmo_tasks.nn.bio import best_bio_tags
from elmo_tasks.nn.crf import CRF

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
NINE = [*TAGS, "B-C-X", "I-C-X", "B-V", "I-V"]
LENGTHS = pytest.mark.parametrize("lengths", [[5, 2, 4, 1], [1, 5], [3, 3], [4], [1, 1, 1]], ids=str)


def make_mask(lengths):
    return torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def is_iob2(tags):
    return re.fullmatch(r"(?:O |B-(\S+) (?:I-\1 )*)*", " ".join(tags) + " ") is not None


def valid_paths(n_tokens):
    paths = itertools.product(range(len(TAGS)), repeat=n_tokens)
    return torch.tensor([path for path in paths if is_iob2([TAGS[k] for k in path])])


def totals(scores, paths):
    """The summed scores of each path over the tokens of one text."""
    return scores[torch.arange(paths.shape[1]), paths].sum(dim=1)


def bio_crf(tags):
    """A CRF without any scores of its own that lets I-X follow B-X and I-X alone."""
    allowed = torch.tensor([[not b.startswith("I") or a[2:] == b[2:] for b in tags] for a in tags])
    may_start = torch.tensor([not tag.startswith("I") for tag in tags])
    crf = CRF(allowed, may_start, torch.ones(len(tags), dtype=torch.bool)).double()
    for parameter in crf.parameters():
        parameter.data.zero_()
    return crf


@pytest.mark.parametrize(
    ("tags", "valid"),
    [
        ("O B-X I-X I-X B-X B-Y I-Y", True),
        ("B-C-X I-C-X O", True),
        ("I-X", False),
        ("O I-X", False),
        ("B-X I-Y", False),
        ("B-X O I-X", False),
        ("B-C-X I-X", False),
        ("B-X I-X I-Y", False),
    ],
)
def test_these_tests_distinguish_valid_sequences_from_others(tags, valid):
    assert is_iob2(tags.split()) == valid


@LENGTHS
def test_the_best_of_all_valid_sequences_is_found(lengths):
    valid = {n: valid_paths(n) for n in lengths}
    overruled = 0
    for _ in range(20):
        scores = torch.randn(len(lengths), max(lengths), len(TAGS), dtype=torch.double)
        paths = best_bio_tags(scores, make_mask(lengths), TAGS)
        for row, n, path in zip(scores, lengths, paths, strict=True):
            assert path == valid[n][totals(row, valid[n]).argmax()].tolist()
            overruled += path != row[:n].argmax(dim=1).tolist()
    assert overruled > 5, "the rule was never needed"


@LENGTHS
def test_among_equal_sequences_any_valid_one_is_given(lengths):
    valid = {n: valid_paths(n) for n in lengths}
    for _ in range(20):
        scores = torch.randint(-1, 2, (len(lengths), max(lengths), len(TAGS))).double()
        paths = best_bio_tags(scores, make_mask(lengths), TAGS)
        for row, n, path in zip(scores, lengths, paths, strict=True):
            assert is_iob2([TAGS[k] for k in path])
            assert totals(row, torch.tensor([path])) == totals(row, valid[n]).max()


@pytest.mark.parametrize("tags", [TAGS[:3], TAGS, NINE], ids=len)
def test_it_decodes_as_a_crf_without_transition_scores(tags):
    crf, lengths = bio_crf(tags), [17, 3, 30, 1, 30, 8]
    for _ in range(5):
        scores = torch.randn(len(lengths), max(lengths), len(tags), dtype=torch.double)
        assert best_bio_tags(scores, make_mask(lengths), tags) == crf.decode(scores, make_mask(lengths))


@pytest.mark.parametrize("garbage", [0.0, 1e6, -1e6, float("nan"), float("inf")])
def test_padding_changes_nothing(garbage):
    lengths = [4, 7, 1, 2]
    mask, scores = make_mask(lengths), torch.randn(4, 7, len(NINE))
    paths = best_bio_tags(scores, mask, NINE)
    assert [len(path) for path in paths] == lengths
    assert best_bio_tags(scores.masked_fill(~mask.unsqueeze(2), garbage), mask, NINE) == paths
    for row, n, path in zip(scores, lengths, paths, strict=True):
        assert best_bio_tags(row[None, :n], mask[:1, :1].expand(1, n), NINE) == [path]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_decodes_as_a_cpu():
    scores, mask = torch.randn(4, 7, len(NINE)), make_mask([4, 7, 1, 2])
    assert best_bio_tags(scores.cuda(), mask.cuda(), NINE) == best_bio_tags(scores, mask, NINE)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("inside_score", [0.0, 3.0])
def test_no_sequence_is_ever_invalid(scale, inside_score):
    lengths = torch.randint(1, 41, (64,)).tolist()
    scores = torch.randn(len(lengths), max(lengths), len(NINE))
    scores[:, :, 2::2] += inside_score  # all that wants to break the rule
    paths = best_bio_tags(scale * scores, make_mask(lengths), NINE)
    assert [len(path) for path in paths] == lengths
    assert all(is_iob2([NINE[k] for k in path]) for path in paths)


@pytest.mark.parametrize("tags", [["B-X", "I-X", "O"], ["O", "I-X", "B-X"], ["O", "B-X", "B-Y", "I-X", "I-Y"]])
def test_tags_in_another_order_are_refused(tags):
    with pytest.raises(AssertionError):
        best_bio_tags(torch.zeros(1, 1, len(tags)), make_mask([1]), tags)
