"""What a token looks like to a task model before ELMo: its word vector and its characters."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.batch import Text
from elmo_tasks.bilm.chars import N_CHARACTERS, PADDING


class WordEmbedding(nn.Module):
    """Word vectors ``[n, dim]``; row 0 is padding."""

    def __init__(self, matrix: Tensor, *, trainable: bool) -> None:
        super().__init__()
        self.dim = matrix.shape[1]
        self.weight = nn.Parameter(matrix, requires_grad=trainable)

    def forward(self, text: Text) -> Tensor:
        """float ``[B, T, dim]``."""
        return F.embedding(text.word_ids, self.weight, padding_idx=0)


class CharacterCNN(nn.Module):
    """Maximum over a word's characters of ReLU filters (Ma and Hovy, 2016).

    Args:
        char_dim: size of a character's embedding.
        widths: filter widths.
        filters: filters of each width.
    """

    def __init__(self, *, char_dim: int, widths: list[int], filters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_CHARACTERS, char_dim, padding_idx=0)
        self.convolutions: list[nn.Conv1d] = nn.ModuleList(  # type: ignore[assignment]
            nn.Conv1d(char_dim, filters, width) for width in widths
        )
        self.dim = filters * len(widths)
        self.max_width = max(widths)

    def forward(self, text: Text) -> Tensor:
        """float ``[B, T, dim]``, zero on padding.

        Each distinct word of the batch is convolved once. Only windows within a word count (one that is shorter
        than the filter is filled up with zeros), so that a word's features do not depend on its batch.
        """
        assert text.char_ids is not None
        words, where = torch.unique(text.char_ids[text.mask], dim=0, return_inverse=True)
        real = words != PADDING
        lengths = real.sum(dim=1, keepdim=True)
        x = (self.embedding(words) * real.unsqueeze(2)).transpose(1, 2)  # [W, char_dim, C]
        x = F.pad(x, (0, max(0, self.max_width - x.shape[2])))
        features = torch.cat([_maxima(conv(x), lengths, conv.kernel_size[0]) for conv in self.convolutions], dim=1)
        out = features.new_zeros(*text.mask.shape, self.dim)
        out[text.mask] = features[where]
        return out


def _maxima(scores: Tensor, lengths: Tensor, width: int) -> Tensor:
    """``[W, filters, windows]`` to ``[W, filters]``: ReLU, then the maximum over the windows within each word."""
    starts = torch.arange(scores.shape[2], device=scores.device)
    inside = starts <= (lengths - width).clamp_min(0)
    return (F.relu(scores) * inside.unsqueeze(1)).amax(dim=2)
