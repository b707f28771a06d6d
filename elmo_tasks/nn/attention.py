"""Attention between the words of two texts, or of one."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension where ``mask`` (broadcast) is True; zeros elsewhere."""
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


class Trilinear(nn.Module):
    """``u . x + v . y + w . (x * y)`` for each pair of words (Seo et al., 2017), with no tensor of all pairs' vectors.

    Args:
        dim: H, the width of both texts' words.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.of_x = nn.Parameter(torch.empty(dim))
        self.of_y = nn.Parameter(torch.empty(dim))
        self.of_both = nn.Parameter(torch.empty(dim))
        bound = (6 / (3 * dim + 1)) ** 0.5  # glorot uniform of the one weight [3 H, 1] that they are
        for weight in (self.of_x, self.of_y, self.of_both):
            nn.init.uniform_(weight, -bound, bound)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """``[B, T, H]`` and ``[B, U, H]`` to ``[B, T, U]``."""
        by_word = (x @ self.of_x).unsqueeze(2) + (y @ self.of_y).unsqueeze(1)
        return torch.baddbmm(by_word, x * self.of_both, y.transpose(1, 2))
