"""The biLSTM of the task models."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BiLSTM(nn.Module):
    """One bidirectional LSTM layer over padded texts; padding has no influence and comes out as zeros.

    Each direction is a layer of its own that reads padded texts from their first token on, the backward one after each
    text has been turned round. Padding is then behind what it could disturb, and PyTorch's fused layer can be used,
    which on a CPU it has for texts of one length only (two to four times faster than for packed texts).

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
        turned = _turned(mask)
        forward, _ = self.left_to_right(x)
        backward, _ = self.right_to_left(_rows(x, turned))
        return torch.cat([forward, _rows(backward, turned)], dim=2).masked_fill(~mask.unsqueeze(2), 0.0)


def _turned(mask: Tensor) -> Tensor:
    """Long ``[B, T]``: the flat place of each token once its text is turned round; padding stays where it is."""
    n_texts, n_tokens = mask.shape
    places = torch.arange(n_tokens, device=mask.device)
    within = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - places, places)
    return within + n_tokens * torch.arange(n_texts, device=mask.device).unsqueeze(1)


def _rows(x: Tensor, places: Tensor) -> Tensor:
    """``[B, T, E]`` with the tokens at some flat places."""
    return x.flatten(0, 1).index_select(0, places.flatten()).view(x.shape)
