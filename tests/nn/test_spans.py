from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch

from elmo_tasks.nn.spans import N_DISTANCES, all_spans, best_spans, distance_bucket, head_attention

DOCUMENTS = [[4, 1, 6, 2, 1], [1], [1, 1, 1], [5], [3, 3], [2, 7]]
documents = pytest.mark.parametrize("lengths", DOCUMENTS, ids=str)


def make_mask(lengths, padding=0):
    return torch.arange(max(lengths) + padding) < torch.tensor(lengths).unsqueeze(1)


@documents
@pytest.mark.parametrize("max_width", [1, 2, 4, 30])
def test_all_spans_are_those_within_a_sentence_that_are_narrow_enough_in_order(lengths, max_width):
    sentence = [k for k, length in enumerate(lengths) for _ in range(length)]
    expected = [
        (i, j)
        for i, j in combinations_with_replacement(range(len(sentence)), 2)
        if sentence[i] == sentence[j] and j - i + 1 <= max_width
    ]
    for padding in (0, 3):
        first, last = all_spans(make_mask(lengths, padding), max_width)
        assert first.dtype == last.dtype == torch.long
        assert list(zip(first.tolist(), last.tolist(), strict=True)) == expected


def attended(x, scores, first, last):
    """A span at a time, in order of the sentence."""
    out = []
    for i, j in zip(first.tolist(), last.tolist(), strict=True):
        exponentials = np.exp(scores[i : j + 1] - scores[i : j + 1].max())
        out.append(exponentials @ x[i : j + 1] / exponentials.sum())
    return np.array(out)


@documents
@pytest.mark.parametrize("max_width", [1, 3, 30])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_heads_are_each_spans_words_weighted_by_the_softmax_of_its_own_scores(lengths, max_width, scale):
    first, last = all_spans(make_mask(lengths), max_width)
    x, scores = torch.randn(sum(lengths), 5, dtype=torch.float64), scale * torch.randn(sum(lengths)).double()
    expected = attended(x.numpy(), scores.numpy(), first, last)
    np.testing.assert_allclose(head_attention(x, scores, first, last, max_width), expected, atol=1e-12)
    found = head_attention(x.float(), scores.float(), first, last, max_width + 2)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_head_attentions_gradients_are_those_of_finite_differences():
    first, last = all_spans(make_mask([4, 1, 2]), 3)
    x, scores = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in ((7, 2), (7,)))
    assert torch.autograd.gradcheck(lambda x, scores: head_attention(x, scores, first, last, 3), (x, scores))


def test_head_attention_gathers_no_words_of_all_spans_at_once(largest):
    first, last = all_spans(make_mask([40, 40]), 10)
    x, scores = torch.randn(80, 30, requires_grad=True), torch.randn(80, requires_grad=True)
    with largest:
        head_attention(x, scores, first, last, 10).square().sum().backward()
    assert largest.n_elements == len(first) * 30


def crosses(a, b):
    """Whether two spans have words in common and each has one of its own."""
    a, b = (set(range(first, last + 1)) for first, last in (a, b))
    return bool(a & b) and bool(a - b) and bool(b - a)


def greedily_best(scores, spans, n):
    kept = []
    for k in sorted(range(len(spans)), key=lambda k: (-scores[k], k)):
        if len(kept) < n and not any(crosses(spans[k], spans[other]) for other in kept):
            kept.append(k)
    return sorted(kept)


@pytest.mark.parametrize("n_values", [1, 3, 1000])
@pytest.mark.parametrize("n", [1, 4, 11, 1000])
def test_the_best_spans_are_taken_greedily_unless_they_cross_a_better_one(n, n_values):
    fewer = 0
    for lengths in DOCUMENTS:
        for max_width in (2, 4, 30):
            first, last = all_spans(make_mask(lengths), max_width)
            scores = torch.randint(n_values, (len(first),)).float()  # whole numbers, so that ties come often
            expected = greedily_best(scores.tolist(), list(zip(first.tolist(), last.tolist(), strict=True)), n)
            found = best_spans(scores, first, last, n)
            assert found.dtype == torch.long
            assert found.tolist() == expected
            fewer += len(expected) < min(n, len(first))
    assert fewer or n < 11, "in some documents, fewer fit than there are"


def test_the_best_of_spans_in_any_order_are_as_good():
    for _ in range(200):
        first = torch.randint(9, (25,))
        last = first + torch.randint(5, (25,))
        scores = torch.randn(25)
        spans = list(zip(first.tolist(), last.tolist(), strict=True))
        assert best_spans(scores, first, last, 12).tolist() == greedily_best(scores.tolist(), spans, 12)


def test_without_spans_the_result_is_still_an_index():
    first, last = all_spans(make_mask([3]), 2)
    for kept in (best_spans(torch.randn(5), first, last, 0), best_spans(*torch.zeros(3, 0).long(), 4)):
        assert first[kept].tolist() == []


def test_distances_are_counted_one_by_one_up_to_four_and_then_by_powers_of_two():
    rows = [range(1, 2), range(2, 3), range(3, 4), range(4, 5), range(5, 8), range(8, 16), range(16, 32)]
    rows += [range(32, 64), range(64, 1000)]
    assert len(rows) == N_DISTANCES
    for bucket, distances in enumerate(rows):
        assert distance_bucket(torch.tensor(list(distances))).tolist() == [bucket] * len(distances)
    assert distance_bucket(torch.tensor([[1, 64], [7, 8]])).tolist() == [[0, 8], [4, 5]]
