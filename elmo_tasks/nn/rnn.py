"""The biLSTM of the task models."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BiLSTM(nn.Module):
    """One bidirectional LSTM layer over padded texts; padding has no influence and comes out as zeros.

    Each direction is a separate layer over padded texts; for the backward one, the tokens of each text are reversed
    first. Padding then follows all tokens, where it has no influence, and PyTorch's fused layer can be used. On a CPU
    the fused layer takes texts of one length only, and is two to four times faster than the one for packed texts.

    Args:
        input_dim: E.
        hidden: cells of a direction; H = 2 x hidden is ``dim``.
    """

    def __init__(self, input_dim: int, hidden: int) -> None:
        super().__init__()
        self.dim = 2 * hidden
        self.left_to_right = nn.LSTM(input_dim, hidden, batch_first=True)
        self.right_to_left = nn.LSTM(input_dim, hidden, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[B, T, E]`` and bool ``[B, T]`` to ``[B, T, H]``."""
        indices = reversed_indices(mask)
        forward, _ = self.left_to_right(x)
        backward, _ = self.right_to_left(take_rows(x, indices))
        return torch.cat([forward, take_rows(backward, indices)], dim=2).masked_fill(~mask.unsqueeze(2), 0.0)


def reversed_indices(mask: Tensor) -> Tensor:
    """Long ``[B, T]``: the flat index of each token in its reversed text; padding keeps its index."""
    n_texts, n_tokens = mask.shape
    indices = torch.arange(n_tokens, device=mask.device)
    within = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - indices, indices)
    return within + n_tokens * torch.arange(n_texts, device=mask.device).unsqueeze(1)


def take_rows(x: Tensor, indices: Tensor) -> Tensor:
    """``[B, T, E]`` to the same shape, with the tokens at the flat ``indices``, long ``[B, T]``."""
    return x.flatten(0, 1).index_select(0, indices.flatten()).view(x.shape)
