"""Share of right labels."""

from __future__ import annotations

from collections.abc import Sequence


class Accuracy:
    """Percentage of predictions that equal gold."""

    name = "accuracy"
    higher_is_better = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.right = self.count = 0

    def update(self, predictions: Sequence[int], gold: Sequence[int]) -> None:
        self.right += sum(p == g for p, g in zip(predictions, gold, strict=True))
        self.count += len(gold)

    def compute(self) -> dict[str, float]:
        return {"accuracy": 100 * self.right / max(1, self.count)}
