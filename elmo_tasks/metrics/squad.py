"""Exact match and F1 as the official SQuAD v1.1 script counts them."""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from elmo_tasks.data.squad import SquadGold


class SquadScore:
    """Percentages over all questions; of several references, the best match counts.

    Sums run in the order of the file, as the script's do, so that not even the last digit differs.
    """

    name = "f1"
    higher_is_better = True
    bounds = (0.0, 100.0)
    reported = ("f1", "exact_match")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.predictions: dict[int, tuple[SquadGold, str]] = {}

    def update(self, predictions: Sequence[str], gold: Sequence[SquadGold]) -> None:
        """Answer texts and references of some questions."""
        for prediction, question in zip(predictions, gold, strict=True):
            self.predictions[question["number"]] = question, prediction

    def compute(self) -> dict[str, float]:
        exact = f1 = 0.0
        for _, (gold, prediction) in sorted(self.predictions.items()):
            exact += _best(exact_match, prediction, gold["answers"])
            f1 += _best(token_f1, prediction, gold["answers"])
        n = max(1, len(self.predictions))
        return {"f1": 100.0 * f1 / n, "exact_match": 100.0 * exact / n}

    def files(self) -> dict[str, str]:
        """The predictions as the official script reads them."""
        by_id = {gold["id"]: prediction for _, (gold, prediction) in sorted(self.predictions.items())}
        return {"predictions.json": json.dumps(by_id, ensure_ascii=False, indent=1) + "\n"}


def normalize(answer: str) -> str:
    """Lower case, without ASCII punctuation and articles, with single spaces."""
    letters = "".join(c for c in answer.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", letters).split())


def exact_match(prediction: str, reference: str) -> float:
    """1 if both are the same once normalised."""
    return float(normalize(prediction) == normalize(reference))


def token_f1(prediction: str, reference: str) -> float:
    """Harmonic mean of precision and recall over the normalised words, each as often as it occurs."""
    found, wanted = normalize(prediction).split(), normalize(reference).split()
    shared = (Counter(found) & Counter(wanted)).total()
    if shared == 0:
        return 0.0
    precision, recall = shared / len(found), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def _best(score: Callable[[str, str], float], prediction: str, references: Sequence[str]) -> float:
    return max(score(prediction, reference) for reference in references)
