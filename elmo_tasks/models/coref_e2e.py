"""End-to-end coreference by span ranking (Lee et al., 2017), the paper's baseline for coreference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.data.coref import CorefBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import TaskModel
from elmo_tasks.nn.antecedents import AntecedentScorer
from elmo_tasks.nn.coupled_lstm import BiCoupledLSTM
from elmo_tasks.nn.dropout import Dropout
from elmo_tasks.nn.embedding import CharacterCNN, WordEmbedding
from elmo_tasks.nn.linear import Linear
from elmo_tasks.nn.rnn import BiLSTM
from elmo_tasks.nn.spans import all_spans, antecedent_indices, best_spans, head_attention
from elmo_tasks.values import Positive, Rate, Size, Width


@dataclass
class CorefOutput:
    """The spans that are kept, in order, with the scores of their antecedents.

    Attributes:
        spans: long ``[1, K, 2]``, first and last token.
        scores: float ``[1, K, A + 1]``: of no antecedent (0), then of the A spans before, nearest first; -inf where
            there is none.
    """

    spans: Tensor
    scores: Tensor


class CorefE2E(TaskModel):
    """Scores every span as a mention, keeps the best, and ranks for each the earlier ones as its antecedent.

    The biLSTM reads each sentence by itself. Input ELMo is concatenated to words and characters, output ELMo to the
    biLSTM's output; both have their own dropout. Two departures from the 2017 code: the heads are scored by two
    ReLU layers, as in the paper (the code has a linear layer), and ``cell="lstm"`` is a faster cell than that of the
    code.

    Args:
        words: the word embedding.
        elmo: where ELMo goes.
        n_genres: genres of the training set, and one for others.
        char_dim, char_filters, char_widths: sizes of the character CNN.
        cell: ``lstm``, or ``coupled``: the 2017 code's cell, with recurrent dropout.
        hidden: cells of a direction of the biLSTM.
        ffnn: width of the two ReLU layers of each scorer.
        feature_dim: size of the embeddings of width, distance, speaker and genre.
        max_span_width: tokens of the widest span.
        spans_per_word: share of the document's length that is kept as spans.
        max_antecedents: spans before a span that are ranked.
        dropout: rate in the scorers, on the biLSTM's output, on the embeddings of width, distance, speaker and genre,
            and of the coupled cell's recurrent dropout.
        lexical_dropout: rate on words and characters.
    """

    def __init__(
        self,
        *,
        words: WordEmbedding,
        elmo: Elmo,
        n_genres: int,
        char_dim: Width,
        char_filters: Width,
        char_widths: Sequence[Width],
        cell: Literal["lstm", "coupled"],
        hidden: Width,
        ffnn: Width,
        feature_dim: Width,
        max_span_width: Width,
        spans_per_word: Positive,
        max_antecedents: Size,
        dropout: Rate,
        lexical_dropout: Rate,
    ) -> None:
        super().__init__()
        self.words, self.elmo = words, elmo
        self.max_span_width, self.spans_per_word = max_span_width, spans_per_word
        self.characters = CharacterCNN(char_dim=char_dim, widths=list(char_widths), filters=char_filters)
        self.lexical_dropout = Dropout(lexical_dropout)
        self.dropout = Dropout(dropout)
        embedded = words.dim + self.characters.dim + elmo.input_dim
        coupled = cell == "coupled"
        self.encoder = BiCoupledLSTM(embedded, hidden, dropout) if coupled else BiLSTM(embedded, hidden)
        encoded = self.encoder.dim + elmo.output_dim
        self.head_score = _scorer(encoded, ffnn, dropout)
        self.width = nn.Embedding(max_span_width, feature_dim)
        self.span_dim = 2 * encoded + embedded + feature_dim
        self.mention_score = _scorer(self.span_dim, ffnn, dropout)
        self.pair_score = AntecedentScorer(
            span_dim=self.span_dim,
            hidden=ffnn,
            feature_dim=feature_dim,
            n_genres=n_genres,
            max_antecedents=max_antecedents,
            dropout=dropout,
        )

    def forward(self, batch: CorefBatch) -> CorefOutput:
        text = batch.text
        x = self.lexical_dropout(torch.cat([self.words(text), self.characters(text)], dim=2))
        x = self.elmo.at_input(x, text)  # which has its own dropout
        h = self.elmo.at_output(self.dropout(self.encoder(x, text.mask)), text)
        x, h = x[text.mask], h[text.mask]  # [n, E], [n, H]: the document's tokens in a row
        first, last = all_spans(text.mask, self.max_span_width)
        spans = self._represent(x, h, first, last)  # [C, span_dim]
        mention_scores = self.mention_score(spans).squeeze(1)
        kept = best_spans(mention_scores.detach(), first, last, int(self.spans_per_word * len(x)) or 1)
        scores = self._rank(spans[kept], mention_scores[kept], first[kept], batch)
        return CorefOutput(torch.stack([first[kept], last[kept]], dim=1).unsqueeze(0), scores.unsqueeze(0))

    def _represent(self, x: Tensor, h: Tensor, first: Tensor, last: Tensor) -> Tensor:
        """Both ends in context, the words by head attention, and the width: ``[C, span_dim]``."""
        heads = head_attention(x, self.head_score(h).squeeze(1), first, last, self.max_span_width)
        return torch.cat([h[first], h[last], heads, self.dropout(self.width(last - first))], dim=1)

    def _rank(self, spans: Tensor, mention_scores: Tensor, first: Tensor, batch: CorefBatch) -> Tensor:
        """Score each of the K spans with the A before it: ``[K, A + 1]``, no antecedent, then the nearest first."""
        scores = self.pair_score(spans, batch.speakers[first], batch.genre)
        n_spans, n_antecedents = scores.shape
        antecedents = antecedent_indices(torch.arange(n_spans, device=spans.device), n_antecedents).clamp_min(0)
        return F.pad(scores + mention_scores.unsqueeze(1) + mention_scores[antecedents], (1, 0))

    def loss(self, out: CorefOutput, batch: CorefBatch) -> Tensor:
        """Negative log of the summed probability of a span's gold antecedents, summed over spans.

        The gold of a span that is no gold mention, or whose gold antecedents are all pruned, is no antecedent.
        """
        (spans,), (scores,) = out.spans, out.scores
        clusters = _gold_clusters(spans, batch)
        before = antecedent_indices(torch.arange(len(spans), device=spans.device), scores.shape[1] - 1)  # [K, A]
        same = (clusters[before.clamp_min(0)] == clusters.unsqueeze(1)) & (before >= 0) & (clusters.unsqueeze(1) >= 0)
        gold = torch.cat([~same.any(dim=1, keepdim=True), same], dim=1)
        gold_scores = torch.logsumexp(scores.masked_fill(~gold, -torch.inf), dim=1)
        return (torch.logsumexp(scores, dim=1) - gold_scores).sum()

    def decode(self, out: CorefOutput, batch: CorefBatch) -> list[list[list[tuple[int, int]]]]:
        """Clusters of mentions (first token, token after the last): spans linked to their best antecedents."""
        spans = [(first, last + 1) for first, last in out.spans[0].tolist()]
        best = out.scores[0].argmax(dim=1).tolist()
        cluster_ids: dict[int, int] = {}
        clusters: list[list[tuple[int, int]]] = []
        for k, offset in enumerate(best):
            if offset == 0:
                continue
            antecedent = k - offset
            if antecedent not in cluster_ids:
                cluster_ids[antecedent] = len(clusters)
                clusters.append([spans[antecedent]])
            cluster_ids[k] = cluster_ids[antecedent]
            clusters[cluster_ids[k]].append(spans[k])
        return [clusters]


def _scorer(dim: int, width: int, dropout: float) -> nn.Sequential:
    """Two ReLU layers and one number."""
    return nn.Sequential(
        Linear(dim, width),
        nn.ReLU(),
        Dropout(dropout),
        Linear(width, width),
        nn.ReLU(),
        Dropout(dropout),
        Linear(width, 1),
    )


def _gold_clusters(spans: Tensor, batch: CorefBatch) -> Tensor:
    """Long ``[K]``: the gold cluster of each span, -1 for none."""
    found = (spans.unsqueeze(1) == batch.mentions).all(dim=2)  # [K, M]
    if not found.shape[1]:
        return spans.new_full((len(spans),), -1)
    return torch.where(found.any(dim=1), batch.clusters[found.long().argmax(dim=1)], -1)
