"""F1 of word sense disambiguation as the unified framework's scorer counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

ALL = "f1"
"""The name of the score over all sets together; the others have the names of their sets."""


class SenseF1:
    """Share of right senses over all sets together (``f1``) and within each; any of an instance's gold keys is right.

    An instance without an answer (None) is missed by the recall alone. Where all are answered, F1 is the accuracy.
    """

    name = ALL
    higher_is_better = True
    bounds = (0.0, 100.0)
    reported = (ALL,)

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.right: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.count: Counter[str] = Counter()

    def update(self, predictions: Sequence[str | None], gold: Sequence[tuple[str, Sequence[str]]]) -> None:
        """``predictions``: a sense key or None for each instance; ``gold``: its set and the keys that are right."""
        for key, (name, keys) in zip(predictions, gold, strict=True):
            for group in (ALL, name):
                self.count[group] += 1
                self.answered[group] += key is not None
                self.right[group] += key in keys

    def compute(self) -> dict[str, float]:
        names = dict.fromkeys([ALL, *self.count])
        return {name: 200 * self.right[name] / max(1, self.answered[name] + self.count[name]) for name in names}
