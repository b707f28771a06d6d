import numpy as np
import pytest
import torch

from elmo_tasks.data.senses import Instance, SenseSentence
from elmo_tasks.elmo import ScalarMix
from elmo_tasks.metrics.wsd import SenseF1
from elmo_tasks.probes.sense_means import SenseMeans, vectors

INVENTORY = {("bank", "n"): ["bank%a", "bank%b", "bank%c"], ("palm", "n"): ["palm%a", "palm%b"]}
BANK, PALM = INVENTORY


def test_the_sense_with_the_closest_mean_is_chosen_by_angle_not_by_length_or_number():
    means = SenseMeans(INVENTORY)
    for vector in ([10.0, 0.0], [10.0, 2.0], [10.0, -2.0]):
        means.add(["bank%b"], np.array(vector))
    means.add(["bank%c"], np.array([0.0, 0.1]))
    assert means.choose(BANK, np.array([1.0, 0.9])) == "bank%b"
    assert means.choose(BANK, np.array([0.9, 1.0])) == "bank%c"
    assert means.choose(BANK, np.array([-1.0, -2.0])) == "bank%b"  # -0.45 against -0.89


def test_only_senses_that_were_seen_are_candidates_and_others_fall_back_to_the_first():
    means = SenseMeans(INVENTORY)
    means.add(["bank%c"], np.array([1.0, 0.0]))
    assert means.choose(BANK, np.array([-1.0, 0.0])) == "bank%c"
    assert means.choose(PALM, np.array([1.0, 0.0])) == "palm%a"
    assert means.choose(("unknown", "n"), np.array([1.0, 0.0])) is None


def test_an_instance_of_two_senses_counts_for_both_and_equal_ones_go_by_wordnets_order():
    means = SenseMeans(INVENTORY)
    means.add(["bank%c", "bank%b", "not-in-wordnet"], np.array([1.0, 2.0]))
    assert means.seen(BANK) == ["bank%b", "bank%c"]
    assert means.choose(BANK, np.array([1.0, 2.0])) == "bank%b"


def test_adding_does_not_change_the_given_vector():
    means, vector = SenseMeans(INVENTORY), np.ones(2)
    means.add(["bank%a"], vector)
    means.add(["bank%a"], vector)
    assert vector.tolist() == [1, 1]
    assert means.sums["bank%a"].tolist() == [2, 2]


class Store:
    """Gives token k of a sentence the vector (k, its length) in layer 1."""

    def padded(self, sentences):
        layers = torch.full((len(sentences), 3, max(map(len, sentences)), 2), 99.0)
        for row, sentence in zip(layers, sentences, strict=True):
            for k in range(len(sentence)):
                row[1, k] = torch.tensor([float(k), float(len(sentence))])
        return layers


def test_the_vector_of_several_words_is_their_mean_and_sentences_without_instances_are_skipped():
    one, many = Instance(BANK, 2, 3, ("bank%a",)), Instance(PALM, 1, 4, ("palm%a",))
    sentences = [SenseSentence(["w"] * 5, [one, many]), SenseSentence(["w"] * 9, []), SenseSentence(["w"] * 3, [one])]
    found = list(vectors(sentences * 40, Store(), ScalarMix(n_layers=3, mix="layer_1")))
    assert [(i, v.tolist()) for i, v in found] == [(one, [2, 5]), (many, [2, 5]), (one, [2, 3])] * 40


def test_f1_is_over_all_sets_and_by_set_and_any_gold_key_is_right():
    metric = SenseF1()
    metric.update(["a", "b", "c"], [("x", ("a", "z")), ("x", ("z",)), ("y", ("z", "c"))])
    assert metric.compute() == {"f1": pytest.approx(200 / 3), "x": 50, "y": 100}


def test_unanswered_items_lower_the_recall_only():
    metric = SenseF1()
    metric.update(["a", None, "b", None], [("x", ("a",))] * 4)
    precision, recall = 1 / 2, 1 / 4
    assert metric.compute()["f1"] == pytest.approx(100 * 2 * precision * recall / (precision + recall))
    metric.reset()
    assert metric.compute() == {"f1": 0}
