import math
import random

import pytest
import torch

from elmo_tasks.metrics.accuracy import Accuracy
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.metrics.span_f1 import SpanF1


def slow_f1(*pairs):
    metric = SpanF1()
    for predicted, gold in pairs:
        metric.update([predicted.split()], [gold.split()])
    scores = metric.compute()
    return scores["precision"], scores["recall"], scores["f1"]


@pytest.mark.parametrize(
    ("predicted", "gold", "scores"),
    [
        ("B-X I-X O B-Y", "B-X I-X O B-Y", (100, 100, 100)),
        ("B-X O O B-Y", "B-X I-X O B-Y", (50, 50, 50)),  # a span too short counts for nothing
        ("B-Y I-Y O B-Y", "B-X I-X O B-Y", (50, 50, 50)),  # so does one of the wrong type
        ("B-X B-X O O", "B-X I-X O O", (0, 0, 0)),
        ("B-X O B-X O", "B-X O O O", (50, 100, 200 / 3)),
        ("B-X O O O", "B-X O B-X B-X", (100, 100 / 3, 50)),
        ("O O", "B-X O", (0, 0, 0)),
        ("B-X O", "O O", (0, 0, 0)),
        ("O O", "O O", (0, 0, 0)),
        ("I-X I-X O", "B-X I-X O", (100, 100, 100)),  # conlleval: an I may begin a chunk
        ("B-X I-Y O", "B-X B-Y O", (100, 100, 100)),  # conlleval: a change of type begins a chunk
    ],
)
def test_span_scores_counted_by_hand(predicted, gold, scores):
    assert slow_f1((predicted, gold)) == pytest.approx(scores)


def test_spans_end_with_their_sentence_and_counts_add_up_over_batches():
    # 1 of 1 predicted and 1 of 4 gold; then 1 of 3 predicted and 1 of 1 gold: in all 2 of 4 and 2 of 5
    pairs = [("B-X O B-O O", "O O B-O O"), ("B-X I-X", "B-X I-X"), ("O B-X O", "B-X B-X I-X"), ("O", "B-Y")]
    assert slow_f1(*pairs) == pytest.approx((50, 40, 400 / 9))
    assert slow_f1(("O B-X", "O B-X"), ("I-X O", "I-X O")) == (100, 100, 100)


def test_span_scores_equal_set_arithmetic_on_random_spans():
    rng = random.Random(0)
    hits = n_predicted = n_gold = 0
    metric = SpanF1()
    for _ in range(200):
        both = []
        for _side in range(2):
            tags, spans, k = [], set(), 0
            while k < 12:
                n, kind = rng.choice([(1, None), (1, None), (1, "X"), (2, "X"), (1, "Y")])
                tags += ["O"] * n if kind is None else [f"B-{kind}", *[f"I-{kind}"] * (n - 1)]
                spans |= set() if kind is None else {(k, n, kind)}
                k += n
            both.append((tags + ["O"] * (13 - k), spans))
        (predicted, predicted_spans), (gold, gold_spans) = both
        metric.update([predicted], [gold])
        hits += len(predicted_spans & gold_spans)
        n_predicted, n_gold = n_predicted + len(predicted_spans), n_gold + len(gold_spans)
    assert hits > 100
    assert metric.compute() == pytest.approx(
        {
            "precision": 100 * hits / n_predicted,
            "recall": 100 * hits / n_gold,
            "f1": 200 * hits / (n_predicted + n_gold),
        }
    )


def test_accuracy_is_the_share_of_equal_labels():
    metric = Accuracy()
    metric.update([1, 2, 3], [1, 2, 4])
    metric.update([0], [1])
    assert metric.compute() == {"accuracy": 50.0}


def test_accuracy_refuses_predictions_and_gold_of_two_lengths():
    with pytest.raises(ValueError, match="zip"):
        Accuracy().update([1], [1, 2])


def test_the_perplexity_of_what_is_no_number_is_none():
    metric = Perplexity()
    metric.update(torch.tensor([[1.0, math.nan], [0.0, 0.0]]), None)
    found = metric.compute()
    assert [math.isnan(found[name]) for name in ("forward", "backward", "perplexity")] == [True, False, True]


def test_perplexity_is_the_mean_of_both_directions_over_all_positions():
    metric = Perplexity()
    metric.update(torch.tensor([[math.log(2), math.log(8)], [0.0, 0.0]]), None)
    metric.update(torch.tensor([[math.log(4)], [math.log(27)]]), None)
    assert metric.compute() == pytest.approx({"forward": 4, "backward": 3, "perplexity": 3.5})


@pytest.mark.parametrize(
    ("kind", "wrong", "right"),
    [
        (SpanF1, ([["B-X", "O"]], [["O", "B-X"]]), ([["B-X"]], [["B-X"]])),
        (Accuracy, ([1], [2]), ([1], [1])),
        (Perplexity, (torch.ones(2, 1), None), (torch.zeros(2, 1), None)),
    ],
)
def test_reset_forgets_everything(kind, wrong, right):
    metric, fresh = kind(), kind()
    metric.update(*wrong)
    metric.reset()
    assert metric.compute() == fresh.compute()
    for each in (metric, fresh):
        each.update(*right)
    assert metric.compute() == fresh.compute()
    assert metric.compute()[kind.name] == (100 if kind.higher_is_better else 1)
