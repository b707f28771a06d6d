"""Span precision, recall and F1 as conlleval counts them (seqeval's default mode)."""

from __future__ import annotations

from collections.abc import Sequence


class SpanF1:
    """Micro average over all entity types; a span counts if first token, last token and type are right."""

    name = "f1"
    higher_is_better = True
    bounds = (0.0, 100.0)
    reported = ("f1",)

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.predictions: list[list[str]] = []
        self.gold: list[list[str]] = []

    def update(self, predictions: Sequence[list[str]], gold: Sequence[list[str]]) -> None:
        """IOB2 tags of some sentences."""
        self.predictions += predictions
        self.gold += gold

    def compute(self) -> dict[str, float]:
        from seqeval.metrics.sequence_labeling import precision_recall_fscore_support  # imports scikit-learn: seconds

        if not any(tag != "O" for tags in (*self.gold, *self.predictions) for tag in tags):
            return {"f1": 0.0, "precision": 0.0, "recall": 0.0}
        precision, recall, f1, _ = precision_recall_fscore_support(
            self.gold, self.predictions, average="micro", zero_division=0
        )
        return {"f1": 100 * float(f1), "precision": 100 * float(precision), "recall": 100 * float(recall)}
