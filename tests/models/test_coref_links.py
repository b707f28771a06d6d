"""From scores of antecedents to the loss and to clusters, against enumeration of all choices of antecedents."""

from itertools import product

import numpy as np
import pytest
import torch
from oracles import numbers, softmax

from elmo_tasks.data.coref import CorefBatch
from elmo_tasks.models.coref_e2e import CorefE2E, CorefOutput

CLUSTERS = [[(0, 1), (3, 4)], [(3, 5), (17, 18), (18, 19)], [(12, 14), (15, 16), (20, 21)]]


def make_batch(clusters=CLUSTERS):
    """Gold mentions and the numbers of their clusters; the loss needs nothing else of a batch."""
    table = [(start, stop - 1, k) for k, cluster in enumerate(clusters) for start, stop in cluster]
    table = torch.tensor(table, dtype=torch.long).view(-1, 3)
    return CorefBatch(None, None, None, table[:, :2], table[:, 2], [{}])


def make_output(spans, max_antecedents, scale=2.0):
    """Random scores; -inf where a span has no antecedent."""
    n_antecedents = min(max_antecedents, len(spans))
    scores = scale * torch.randn(1, len(spans), n_antecedents + 1, dtype=torch.float64)
    scores[:, :, 0] = 0
    for k in range(len(spans)):
        scores[:, k, k + 1 :] = -torch.inf
    return CorefOutput(torch.tensor([[(first, stop - 1) for first, stop in spans]]), scores.requires_grad_())


def gold_probability(out, clusters):
    """The sum over all ways to give every span an antecedent that agree with gold."""
    spans = [(first, last + 1) for first, last in out.spans[0].tolist()]
    clusters_by_mention = {mention: k for k, cluster in enumerate(clusters) for mention in cluster}
    probabilities = [softmax(row) for row in numbers(out.scores[0])]
    n_before = len(probabilities[0]) - 1
    total = 0.0
    for choice in product(*(range(min(k, n_before) + 1) for k in range(len(spans)))):
        agrees = []
        for k, offset in enumerate(choice):
            before = spans[max(0, k - n_before) : k]
            cluster = clusters_by_mention.get(spans[k])
            right = [s for s in before if cluster is not None and clusters_by_mention.get(s) == cluster]
            agrees.append(spans[k - offset] in right if offset else not right)
        if all(agrees):
            total += np.prod([row[offset] for row, offset in zip(probabilities, choice, strict=True)])
    return total


KEPT = [
    [(0, 1), (3, 4), (3, 5), (12, 14), (17, 18), (18, 19)],  # two clusters and a mention of a third
    [(0, 1), (0, 2), (3, 4), (5, 6), (15, 16), (20, 21)],  # others than mentions among them
    [(1, 2), (3, 5), (6, 9), (12, 14), (17, 18)],
    [(0, 2), (1, 2), (6, 9)],  # no mention
    [(3, 5), (17, 18), (18, 19)],  # one cluster
    [(17, 18)],
]


@pytest.mark.parametrize("kept", KEPT, ids=str)
@pytest.mark.parametrize("max_antecedents", [1, 2, 250])
def test_loss_is_the_negative_log_probability_of_all_choices_that_agree_with_gold(kept, max_antecedents):
    out = make_output(kept, max_antecedents)
    loss = CorefE2E.loss(None, out, make_batch())
    assert float(loss) == pytest.approx(-np.log(gold_probability(out, CLUSTERS)), rel=1e-9, abs=1e-12)
    loss.backward()
    assert out.scores.grad.isfinite().all()
    assert not out.scores.grad[out.scores == -torch.inf].any()


@pytest.mark.parametrize("kept", KEPT, ids=str)
def test_without_gold_mentions_the_loss_wants_no_antecedent(kept):
    out, batch = make_output(kept, 250), make_batch(clusters=[])
    assert batch.mentions.shape == (0, 2)
    loss = CorefE2E.loss(None, out, batch)
    nothing = [softmax(row)[0] for row in numbers(out.scores[0])]
    assert float(loss) == pytest.approx(-np.log(nothing).sum(), rel=1e-9, abs=1e-12)


def test_the_order_of_gold_mentions_and_clusters_does_not_matter():
    out = make_output(KEPT[0], 250)
    expected = CorefE2E.loss(None, out, make_batch())
    turned = CorefE2E.loss(None, out, make_batch(clusters=[cluster[::-1] for cluster in CLUSTERS[::-1]]))
    torch.testing.assert_close(turned, expected)


def components(out):
    """Sets of spans that links connect."""
    spans = [(first, last + 1) for first, last in out.spans[0].tolist()]
    sets = [{span} for span in spans]
    for k, row in enumerate(numbers(out.scores[0])):
        offset = max(range(len(row)), key=lambda c: row[c])
        if offset:
            own = next(s for s in sets if spans[k] in s)
            other = next(s for s in sets if spans[k - offset] in s)
            if own is not other:
                sets.remove(other)
                own |= other
    return {frozenset(s) for s in sets if len(s) > 1}


@pytest.mark.parametrize("bias", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize("max_antecedents", [1, 3, 250])
def test_clusters_are_what_links_to_the_best_antecedents_connect(max_antecedents, bias):
    seen = set()
    for _ in range(20):
        out = make_output([(k, k + 1 + k % 3) for k in range(12)], max_antecedents)
        out.scores.data[:, :, 1:] += bias
        (clusters,) = CorefE2E.decode(None, out, None)
        mentions = [mention for cluster in clusters for mention in cluster]
        assert len(mentions) == len(set(mentions))
        assert {frozenset(cluster) for cluster in clusters} == components(out)
        assert all(cluster == sorted(cluster) for cluster in clusters)
        seen.update(map(len, clusters))
    assert bias < 0 or max(seen) > 3


def test_links_make_chains_and_what_is_linked_to_nothing_is_in_no_cluster():
    out = make_output([(0, 1), (2, 4), (5, 6), (6, 9), (10, 11), (12, 13)], 250)
    out.scores.data[:, :, 1:] = -torch.inf
    for k, antecedent in [(2, 0), (3, 2), (5, 4)]:
        out.scores.data[0, k, k - antecedent] = 1.0
    assert CorefE2E.decode(None, out, None) == [[[(0, 1), (5, 6), (6, 9)], [(10, 11), (12, 13)]]]
    out.scores.data[:, :, 1:] = -1.0
    assert CorefE2E.decode(None, out, None) == [[]]
