"""Task biRNNs and their dropout."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class VariationalDropout(nn.Module):
    """Dropout with one mask for all positions of a text (Gal and Ghahramani, 2016)."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """``[B, T, E]`` to the same shape."""
        if not self.training or self.p == 0:
            return x
        kept = x.new_empty(x.shape[0], 1, x.shape[2]).bernoulli_(1 - self.p)
        return x * kept / (1 - self.p)


class BiLSTM(nn.Module):
    """One bidirectional LSTM layer over padded texts; padding has no influence and comes out as zeros.

    Args:
        input_dim: E.
        hidden: cells of a direction; H = 2 x hidden is ``dim``.
    """

    def __init__(self, input_dim: int, hidden: int) -> None:
        super().__init__()
        self.dim = 2 * hidden
        self.lstm = nn.LSTM(input_dim, hidden, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[B, T, E]`` and bool ``[B, T]`` to ``[B, T, H]``."""
        packed = pack_padded_sequence(x, mask.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])
        return out
