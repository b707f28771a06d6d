"""Scores of each span of a document with each span before it, in bounded memory.

The product of every span with every earlier one takes most of coreference's time. A block of spans is scored against
the window of all their possible antecedents by one large matrix product (:class:`_Products`); the spans are never
gathered pair by pair. R is the number of spans of a block, W of those in its window, F the width of the hidden layers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from elmo_tasks.nn.dropout import Dropout
from elmo_tasks.nn.linear import Linear, linear, product
from elmo_tasks.nn.spans import N_DISTANCES, antecedent_indices, distance_bucket

_BLOCK = 32  # spans scored together


class AntecedentScorer(nn.Module):
    """Two ReLU layers over [span; antecedent; span * antecedent; same speaker; distance; genre] (Lee et al., 2017).

    The first layer is a sum of parts, so that the parts that depend on one span alone are computed once per span.

    Args:
        span_dim: D.
        hidden: F, width of the two layers.
        feature_dim: size of the embeddings of speaker, distance and genre.
        n_genres: number of genre embeddings.
        max_antecedents: number of preceding spans that are scored for each span.
        dropout: rate after each layer, and on the embeddings of each pair's speaker, distance and genre.
    """

    def __init__(
        self, *, span_dim: int, hidden: int, feature_dim: int, n_genres: int, max_antecedents: int, dropout: float
    ) -> None:
        super().__init__()
        self.max_antecedents = max_antecedents
        self.same_speaker, self.genre = nn.Embedding(2, feature_dim), nn.Embedding(n_genres, feature_dim)
        self.distance = nn.Embedding(N_DISTANCES, feature_dim)
        self.from_span, self.from_antecedent = Linear(span_dim, hidden), Linear(span_dim, hidden, bias=False)
        self.from_product = Linear(span_dim, hidden, bias=False)
        self.feature_dropout = Dropout(dropout)
        self.from_features = Linear(3 * feature_dim, hidden, bias=False)
        self.rest = nn.Sequential(
            nn.ReLU(), Dropout(dropout), Linear(hidden, hidden), nn.ReLU(), Dropout(dropout), Linear(hidden, 1)
        )

    def forward(self, spans: Tensor, speakers: Tensor, genre: Tensor) -> Tensor:
        """Scores of the A = min(``max_antecedents``, K) spans before each, nearest first; -inf where there is none.

        Args:
            spans: float ``[K, D]`` in the document's order.
            speakers: long ``[K]``, index of each span's speaker.
            genre: long ``[]``.

        Returns:
            float ``[K, A]``.
        """
        n_spans, n_antecedents = len(spans), min(self.max_antecedents, len(spans))
        from_span, from_antecedent = self.from_span(spans), self.from_antecedent(spans)
        blocks = []
        for start in range(0, n_spans, _BLOCK):
            stop, first = min(start + _BLOCK, n_spans), max(0, start - n_antecedents)
            numbers = torch.arange(first, stop, device=spans.device)
            rows = numbers[start - first :]
            distances = (rows - numbers.unsqueeze(1)).clamp_min(1)  # [W, R]; only earlier spans count
            same = speakers[start:stop] == speakers[first:stop].unsqueeze(1)
            parts = (spans[first:stop], spans[start:stop], from_antecedent[first:stop], from_span[start:stop])
            scores = checkpoint(self._pairs, *parts, same.long(), distances, genre, use_reentrant=False)
            antecedents = antecedent_indices(rows, n_antecedents)  # [R, A]
            scores = scores.t().gather(1, (antecedents - first).clamp_min(0))
            blocks.append(scores.masked_fill(antecedents < 0, -torch.inf))
        return torch.cat(blocks)

    def _pairs(
        self,
        window: Tensor,
        spans: Tensor,
        from_antecedent: Tensor,
        from_span: Tensor,
        same_speaker: Tensor,
        distances: Tensor,
        genre: Tensor,
    ) -> Tensor:
        """``[W, R]``: each of R spans with each of the W of a window."""
        layer: Tensor = _Products.apply(window, spans, self.from_product.weight)  # type: ignore[no-untyped-call]
        layer = layer + from_antecedent.unsqueeze(1) + from_span + self._from_features(same_speaker, distances, genre)
        scores: Tensor = self.rest(layer).squeeze(2)
        return scores

    def _from_features(self, same_speaker: Tensor, distances: Tensor, genre: Tensor) -> Tensor:
        """The features' part of the first layer, ``[W, R, F]``; each pair has its own dropout mask."""
        kinds = same_speaker * N_DISTANCES + distance_bucket(distances)
        out: Tensor = self.from_features(self.feature_dropout(F.embedding(kinds, self._feature_table(genre))))
        return out

    def _feature_table(self, genre: Tensor) -> Tensor:
        """``[2 * N_DISTANCES, 3 * feature_dim]``: the embeddings of every kind of pair."""
        speaker = self.same_speaker.weight.repeat_interleave(N_DISTANCES, dim=0)
        distance = self.distance.weight.repeat(2, 1)
        return torch.cat([speaker, distance, self.genre(genre).expand_as(distance)], dim=1)


class _Products(torch.autograd.Function):
    """``[W, R, F]``: sum over d of ``window[w, d] spans[r, d] weight[f, d]``; only the arguments are saved."""

    @staticmethod
    def forward(ctx: Any, window: Tensor, spans: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(window, spans, weight)
        return linear(window, _weights(spans, weight)).view(len(window), len(spans), len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        window, spans, weight = ctx.saved_tensors
        d_out = d_out.reshape(len(window), -1).to(window.dtype)  # [W, R * F]; bfloat16 under autocast
        d_weights = product(d_out.t(), window).view(len(spans), len(weight), -1)
        d_window = product(d_out, _weights(spans, weight))
        return d_window, (d_weights * weight).sum(dim=1), (d_weights * spans.unsqueeze(1)).sum(dim=0)


def _weights(spans: Tensor, weight: Tensor) -> Tensor:
    """``[R * F, D]``: the weight times each span."""
    return (spans.unsqueeze(1) * weight).flatten(0, 1)
