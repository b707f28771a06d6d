import json
import random
import re
import string
from collections import Counter

import pytest
from torchmetrics.text import SQuAD

from elmo_tasks.metrics.squad import SquadScore


def scored(*questions):
    metric = SquadScore()
    for number, (prediction, references) in enumerate(questions):
        metric.update([prediction], [{"id": f"q{number}", "number": number, "answers": references}])
    return metric


@pytest.mark.parametrize(
    ("prediction", "references", "exact", "f1"),
    [
        ("the Cat!", ["cat"], 100, 100),
        ("an apple a day", ["Apple,  day"], 100, 100),
        ("  Big\n\u00a0cat ", ["big cat"], 100, 100),
        ("U.S.", ["us"], 100, 100),
        ("U.S.", ["U S"], 0, 0),
        ("well-known", ["wellknown"], 100, 100),
        ("$5", ["5"], 100, 100),
        ("£5", ["5"], 0, 0),  # only ASCII punctuation is taken off
        ("“cat”", ["cat"], 0, 0),
        ("ÉTÉ", ["été"], 100, 100),
        ("theory", ["ory"], 0, 0),
        ("the-cat", ["cat"], 0, 0),
        ("the", ["a"], 100, 0),  # nothing is left of either, so no word is shared
        ("", ["the"], 100, 0),
        ("", ["cat"], 0, 0),
        ("cat", ["the"], 0, 0),
        ("cat sat", ["cat"], 0, 200 / 3),
        ("cat cat", ["cat"], 0, 200 / 3),
        ("no no no", ["no no"], 0, 80),
        ("yes yes", ["yes no yes"], 0, 80),
        ("cat", ["dog", "the cat"], 100, 100),
        ("cat sat", ["cat", "cat sat down", "dog"], 0, 80),
        ("the", ["cat", "a"], 100, 0),
    ],
)
def test_scores_counted_by_hand(prediction, references, exact, f1):
    assert scored((prediction, references)).compute() == pytest.approx({"exact_match": exact, "f1": f1}, rel=1e-12)


def test_scores_are_means_over_questions_each_counted_once_and_reset_forgets_them():
    metric = scored(("cat", ["cat"]), ("cat sat", ["cat"]), ("dog", ["cat"]))
    assert metric.compute() == pytest.approx({"exact_match": 100 / 3, "f1": 500 / 9})
    metric.update(["cat"], [{"id": "q2", "number": 2, "answers": ["cat"]}])
    assert metric.compute() == pytest.approx({"exact_match": 200 / 3, "f1": 800 / 9})
    metric.reset()
    assert metric.compute() == {"exact_match": 0, "f1": 0}
    assert json.loads(metric.files()["predictions.json"]) == {}


WORDS = ["cat", "Cat", "CAT", "cats", "U.S.", "us", "well-known", "wellknown", "don't", "dont", "A.D.", "“yes”"]
WORDS += ["5", "$5", "£5", "été", "ÉTÉ", "京都", "😀", "İ", "ß"]
FILLING = ["the", "A", "an", "The.", ",", ".", "--", "'s", "  ", "\n", "\u00a0", "…"]


def some_questions(seed, n):
    """Predictions, some of them empty, and references that have a word at least."""
    rng = random.Random(seed)
    questions = []
    for _ in range(n):
        references = [
            " ".join([*rng.choices(WORDS + FILLING, k=rng.randint(0, 3)), rng.choice(WORDS)])
            for _ in range(rng.randint(1, 4))
        ]
        other = "".join(word + rng.choice(["", " "]) for word in rng.choices(WORDS + FILLING, k=3))
        near = rng.choice(references).lower().replace(" ", " the ", rng.randint(0, 2))
        questions.append((rng.choice([near, near, other, references[0] + " " + other, "", "the"]), references))
    return questions


@pytest.mark.parametrize("seed", range(8))
def test_scores_equal_those_of_torchmetrics(seed):
    questions = some_questions(seed, 50)
    other = SQuAD()
    for k, (prediction, references) in enumerate(questions):
        answers = {"text": references, "answer_start": [0] * len(references)}
        other.update([{"prediction_text": prediction, "id": str(k)}], [{"answers": answers, "id": str(k)}])
    expected = {name: float(score) for name, score in other.compute().items()}
    assert 10 < expected["exact_match"] < expected["f1"] < 90
    assert scored(*questions).compute() == pytest.approx(expected, rel=1e-6)


def official(questions):
    """The official script's way: running sums in the order of the file."""

    def normalized(text):
        text = "".join(character for character in text.lower() if character not in set(string.punctuation))
        return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())

    def overlap(prediction, truth):
        prediction, truth = normalized(prediction).split(), normalized(truth).split()
        same = sum((Counter(prediction) & Counter(truth)).values())
        if same == 0:
            return 0
        precision, recall = 1.0 * same / len(prediction), 1.0 * same / len(truth)
        return (2 * precision * recall) / (precision + recall)

    f1 = exact = total = 0
    for prediction, references in questions:
        total += 1
        exact += max(normalized(prediction) == normalized(truth) for truth in references)
        f1 += max(overlap(prediction, truth) for truth in references)
    return {"exact_match": 100.0 * exact / total, "f1": 100.0 * f1 / total}


@pytest.mark.parametrize("seed", range(4))
def test_not_even_the_last_digit_depends_on_the_order_of_batches(seed):
    questions, rng = some_questions(seed, 400), random.Random(seed)
    order = rng.sample(range(400), 400)
    assert any(official(rng.sample(questions, 400)) != official(questions) for _ in range(20)), "order would matter"
    metric = SquadScore()
    while order:
        batch, order = order[:7], order[7:]
        gold = [{"id": f"q{k}", "number": k, "answers": questions[k][1]} for k in batch]
        metric.update([questions[k][0] for k in batch], gold)
    assert metric.compute() == official(questions)
    (name, content), *more = metric.files().items()
    assert (name, more) == ("predictions.json", [])
    predictions = json.loads(content.encode("utf-8"))
    assert predictions == {f"q{k}": prediction for k, (prediction, _) in enumerate(questions)}
    again = [(predictions[f"q{k}"], references) for k, (_, references) in enumerate(questions)]
    assert official(again) == scored(*again).compute() == metric.compute()
