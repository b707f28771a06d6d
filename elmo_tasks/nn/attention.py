"""Attention between the tokens of two texts, or of one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension where the mask is True; zeros elsewhere.

    Args:
        scores: float ``[..., n]``.
        mask: bool, broadcast to the scores.

    Returns:
        float ``[..., n]``.
    """
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


def masked_softmax_with_null(scores: Tensor, mask: Tensor, null: Tensor) -> Tensor:
    """As :func:`masked_softmax`, with one more choice: attending to nothing.

    A row sums to less than 1; the rest is the probability of the null choice.

    Args:
        scores: float ``[..., n]``.
        mask: bool, broadcast to the scores.
        null: float ``[]``, the score of the null choice.

    Returns:
        float ``[..., n]``.
    """
    scores = scores.masked_fill(~mask, -torch.inf)
    log_total = torch.logaddexp(torch.logsumexp(scores, dim=-1, keepdim=True), null)
    return (scores - log_total).exp()


class Trilinear(nn.Module):
    """``u . x + v . y + w . (x * y)`` for each pair of tokens (Seo et al., 2017); no tensor holds a vector per pair.

    Args:
        dim: H, the width of both texts.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.x_weight = nn.Parameter(torch.empty(dim))
        self.y_weight = nn.Parameter(torch.empty(dim))
        self.product_weight = nn.Parameter(torch.empty(dim))
        bound = (6 / (3 * dim + 1)) ** 0.5  # Glorot's, of the three as one weight [3 H, 1]
        for weight in (self.x_weight, self.y_weight, self.product_weight):
            nn.init.uniform_(weight, -bound, bound)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """``[B, T, H]`` and ``[B, U, H]`` to ``[B, T, U]``."""
        linear_part = (x @ self.x_weight).unsqueeze(2) + (y @ self.y_weight).unsqueeze(1)
        return torch.baddbmm(linear_part, x * self.product_weight, y.transpose(1, 2))
