"""How well each span of a document goes with each of those before it, in bounded memory.

The product of every span with every earlier one is what coreference spends its time on. A run of spans is scored
against the window of all that may be their antecedents by one large matrix product (:class:`_Products`); the spans are
never gathered pair by pair.
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
from elmo_tasks.nn.spans import N_DISTANCES, distance_bucket

_RUN = 32  # spans scored together


class AntecedentScorer(nn.Module):
    """Two ReLU layers over [span; antecedent; span * antecedent; same speaker; distance; genre] (Lee et al., 2017).

    The first layer is a sum of parts, so that what depends on one span alone is computed once a span.

    Args:
        span_dim: D.
        hidden: F, width of the two layers.
        feature_dim: size of the embeddings of speaker, distance and genre.
        n_genres: genres there are embeddings for.
        max_antecedents: spans before a span that are scored.
        dropout: rate behind each layer.
    """

    def __init__(
        self, *, span_dim: int, hidden: int, feature_dim: int, n_genres: int, max_antecedents: int, dropout: float
    ) -> None:
        super().__init__()
        self.max_antecedents = max_antecedents
        self.same_speaker, self.genre = nn.Embedding(2, feature_dim), nn.Embedding(n_genres, feature_dim)
        self.distance = nn.Embedding(N_DISTANCES, feature_dim)
        self.of_span, self.of_antecedent = Linear(span_dim, hidden), Linear(span_dim, hidden, bias=False)
        self.of_both = Linear(span_dim, hidden, bias=False)
        self.of_same_speaker, self.of_distance, self.of_genre = (
            nn.Linear(feature_dim, hidden, bias=False) for _ in range(3)
        )
        self.rest = nn.Sequential(
            nn.ReLU(), Dropout(dropout), Linear(hidden, hidden), nn.ReLU(), Dropout(dropout), Linear(hidden, 1)
        )

    def forward(self, spans: Tensor, speakers: Tensor, genre: Tensor) -> Tensor:
        """Scores of the A = min(``max_antecedents``, K) spans before each, nearest first; -inf where there is none.

        Args:
            spans: float ``[K, D]`` in the document's order.
            speakers: long ``[K]``, number of each span's speaker.
            genre: long ``[]``.

        Returns:
            float ``[K, A]``.
        """
        n_spans, n_antecedents = len(spans), min(self.max_antecedents, len(spans))
        of_span = self.of_span(spans) + self.of_genre(self.genre(genre))
        of_antecedent = self.of_antecedent(spans)
        pair_features = self.of_same_speaker(self.same_speaker.weight).unsqueeze(1)
        pair_features = (pair_features + self.of_distance(self.distance.weight)).flatten(0, 1)  # [2 * N_DISTANCES, F]
        offsets = torch.arange(1, n_antecedents + 1, device=spans.device)
        pieces = []
        for start in range(0, n_spans, _RUN):
            stop, first = min(start + _RUN, n_spans), max(0, start - n_antecedents)
            numbers = torch.arange(first, stop, device=spans.device)
            rows = numbers[start - first :]
            distances = (rows - numbers.unsqueeze(1)).clamp_min(1)  # [W, R]; others than earlier spans do not count
            same = speakers[start:stop] == speakers[first:stop].unsqueeze(1)
            features = same * N_DISTANCES + distance_bucket(distances)
            pieces_of = (spans[first:stop], spans[start:stop], of_antecedent[first:stop], of_span[start:stop])
            scores = checkpoint(self._pairs, *pieces_of, pair_features, features, use_reentrant=False)
            antecedents = rows.unsqueeze(1) - offsets  # [R, A]
            scores = scores.t().gather(1, (antecedents - first).clamp_min(0))
            pieces.append(scores.masked_fill(antecedents < 0, -torch.inf))
        return torch.cat(pieces)

    def _pairs(
        self,
        window: Tensor,
        spans: Tensor,
        of_antecedent: Tensor,
        of_span: Tensor,
        pair_features: Tensor,
        features: Tensor,
    ) -> Tensor:
        """``[W, R]``: each of R spans with each of the W of a window."""
        layer: Tensor = _Products.apply(window, spans, self.of_both.weight)  # type: ignore[no-untyped-call]
        layer = layer + of_antecedent.unsqueeze(1) + of_span + F.embedding(features, pair_features)
        scores: Tensor = self.rest(layer).squeeze(2)
        return scores


class _Products(torch.autograd.Function):
    """``[W, R, F]``: sum over d of ``window[w, d] spans[r, d] weight[f, d]``; only the arguments are kept."""

    @staticmethod
    def forward(ctx: Any, window: Tensor, spans: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(window, spans, weight)
        return linear(window, _weights(spans, weight)).view(len(window), len(spans), len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        window, spans, weight = ctx.saved_tensors
        d_out = d_out.reshape(len(window), -1).to(window.dtype)  # [W, R * F]; of fewer bits under autocast
        d_weights = product(d_out.t(), window).view(len(spans), len(weight), -1)
        d_window = product(d_out, _weights(spans, weight))
        return d_window, (d_weights * weight).sum(dim=1), (d_weights * spans.unsqueeze(1)).sum(dim=0)


def _weights(spans: Tensor, weight: Tensor) -> Tensor:
    """``[R * F, D]``: the weight as each span sees it."""
    return (spans.unsqueeze(1) * weight).flatten(0, 1)
