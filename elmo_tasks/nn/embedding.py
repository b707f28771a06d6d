"""Token vectors of a task model without ELMo: word embedding and character CNN."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.batch import Text
from elmo_tasks.nn.characters import N_CHARACTERS, PADDING
from elmo_tasks.nn.dropout import Dropout
from elmo_tasks.nn.gather import distinct_rows, gather_rows


class WordEmbedding(nn.Module):
    """Word vectors ``[n, dim]``; row 0 is padding."""

    def __init__(self, matrix: Tensor, *, trainable: bool) -> None:
        super().__init__()
        self.dim = matrix.shape[1]
        self.weight = nn.Parameter(matrix, requires_grad=trainable)

    def append(self, rows: Tensor) -> None:
        """Add rows ``[n, dim]`` for words that training did not have."""
        weight = torch.cat([self.weight.data, rows.to(self.weight)])
        self.weight = nn.Parameter(weight, requires_grad=self.weight.requires_grad)

    def forward(self, text: Text) -> Tensor:
        """The vector of each token, float ``[B, T, dim]``."""
        return F.embedding(text.word_ids, self.weight, padding_idx=0)


class CharacterCNN(nn.Module):
    """Maximum over a word's characters of ReLU filters (Ma and Hovy, 2016).

    Args:
        char_dim: size of a character's embedding.
        widths: filter widths.
        filters: filters of each width.
        dropout: rate on the characters' embeddings.
        init_bound: embeddings are initialised uniformly in [-init_bound, init_bound]; None is Glorot's bound.
    """

    def __init__(
        self,
        *,
        char_dim: int,
        widths: list[int],
        filters: int,
        dropout: float = 0.0,
        init_bound: float | None = None,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_CHARACTERS, char_dim, padding_idx=0)
        bound = (6 / (N_CHARACTERS + char_dim)) ** 0.5 if init_bound is None else init_bound
        nn.init.uniform_(self.embedding.weight, -bound, bound)
        self.embedding.weight.data[0] = 0
        self.dropout = Dropout(dropout)
        self.convolutions: list[nn.Conv1d] = nn.ModuleList(  # type: ignore[assignment]
            nn.Conv1d(char_dim, filters, width) for width in widths
        )
        self.dim = filters * len(widths)
        self.max_width = max(widths)

    def forward(self, text: Text) -> Tensor:
        """The character features of each token, float ``[B, T, dim]``, zero on padding.

        Each distinct word of the batch is convolved once, so that all its occurrences share one dropout mask. Only
        windows within a word are used (a word shorter than the filter is padded with zeros): a word's features do not
        depend on its batch.
        """
        words, where = distinct_rows(text.char_ids[text.mask])
        valid = words != PADDING
        lengths = valid.sum(dim=1, keepdim=True)
        x = (self.dropout(self.embedding(words)) * valid.unsqueeze(2)).transpose(1, 2)  # [W, char_dim, C]
        x = F.pad(x, (0, max(0, self.max_width - x.shape[2])))
        features = torch.cat([_maxima(conv(x), lengths, conv.kernel_size[0]) for conv in self.convolutions], dim=1)
        out = features.new_zeros(*text.mask.shape, self.dim)
        out[text.mask] = gather_rows(features, where)
        return out


def _maxima(scores: Tensor, lengths: Tensor, width: int) -> Tensor:
    """``[W, filters, windows]`` to ``[W, filters]``: ReLU, then the maximum over the windows within each word."""
    starts = torch.arange(scores.shape[2], device=scores.device)
    inside = starts <= (lengths - width).clamp_min(0)
    return (F.relu(scores) * inside.unsqueeze(1)).amax(dim=2)
