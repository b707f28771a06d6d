"""Perplexity of a biLM: forward, backward, and their mean, as in section 3.4."""

from __future__ import annotations

import math

from torch import Tensor


class Perplexity:
    """Exponential of the mean negative log-likelihood, sentence ends included; ``<UNK>`` counts as any other word."""

    name = "perplexity"
    higher_is_better = False
    bounds = (1.0, None)
    reported = ("perplexity", "forward", "backward")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.sums = [0.0, 0.0, 0.0]  # forward, backward, positions

    def update(self, predictions: Tensor, gold: object) -> None:
        """``predictions``: negative log-likelihoods ``[2, n]`` of n positions, forward and backward."""
        for direction in (0, 1):
            self.sums[direction] += float(predictions[direction].double().sum())
        self.sums[2] += predictions.shape[1]

    def compute(self) -> dict[str, float]:
        *totals, count = self.sums
        forward, backward = (math.exp(min(total / max(1, count), 700.0)) for total in totals)
        return {"perplexity": (forward + backward) / 2, "forward": forward, "backward": backward}
