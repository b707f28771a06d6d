"""Share of right labels."""

from __future__ import annotations

from collections.abc import Sequence


class Accuracy:
    """Percentage of predictions that equal gold."""

    name = "accuracy"
    higher_is_better = True
    bounds = (0.0, 100.0)
    reported = ("accuracy",)

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.right = self.count = 0

    def update(self, predictions: Sequence[int], gold: Sequence[int]) -> None:
        self.right += sum(p == g for p, g in zip(predictions, gold, strict=True))
        self.count += len(gold)

    def compute(self) -> dict[str, float]:
        return {"accuracy": 100 * self.right / max(1, self.count)}


class TokenAccuracy(Accuracy):
    """Percentage of right tags over all tokens."""

    def update(self, predictions: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> None:  # type: ignore[override]
        """The tags of some sentences."""
        for tags, right in zip(predictions, gold, strict=True):
            self.right += sum(p == g for p, g in zip(tags, right, strict=True))
            self.count += len(right)
