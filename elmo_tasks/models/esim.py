"""ESIM, the enhanced sequential inference model (Chen et al., 2017), as the paper has it for SNLI."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_tasks.data.snli import SnliBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import Classifier, ClassifierOutput
from elmo_tasks.nn.attention import masked_softmax
from elmo_tasks.nn.dropout import Dropout, VariationalDropout
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.linear import Linear
from elmo_tasks.nn.rnn import BiLSTM
from elmo_tasks.values import Rate, Width


class Esim(Classifier):
    """Aligns the words of premise and hypothesis, compares each with what it is aligned to, and composes.

    One biLSTM encodes both sentences and one composes both. Input ELMo is concatenated to the word vector, output ELMo
    to the encoding biLSTM's output, before the attention.

    Args:
        words: the word embedding.
        elmo: where ELMo goes.
        n_labels: K.
        hidden: cells of a direction of both biLSTMs, and width of both ReLU layers.
        dropout: rate of the variational dropout at each biLSTM's input, and of the dropout before the last two layers.
        attention_dropout: rate on what the attention gives each word: itself, what it is aligned to, their difference
            and their product.
    """

    def __init__(
        self,
        *,
        words: WordEmbedding,
        elmo: Elmo,
        n_labels: int,
        hidden: Width,
        dropout: Rate,
        attention_dropout: Rate,
    ) -> None:
        super().__init__()
        self.words, self.elmo = words, elmo
        self.variational_dropout = VariationalDropout(dropout)
        self.encoder = BiLSTM(words.dim + elmo.input_dim, hidden)
        self.attention_dropout = Dropout(attention_dropout)
        self.projection = nn.Sequential(Linear(4 * (self.encoder.dim + elmo.output_dim), hidden), nn.ReLU())
        self.composition = BiLSTM(hidden, hidden)
        self.classifier = nn.Sequential(
            Dropout(dropout),
            Linear(4 * self.composition.dim, hidden),
            nn.ReLU(),
            Dropout(dropout),
            Linear(hidden, n_labels),
        )

    def forward(self, batch: SnliBatch) -> ClassifierOutput:
        sentences = (batch.premise, batch.hypothesis)  # together in each layer: 2 B rows, half as many calls
        mask = _stack([text.mask for text in sentences])  # [2 B, T]
        x = _stack([self.elmo.at_input(self.words(text), text) for text in sentences])  # [2 B, T, E]
        h = self.encoder(self.variational_dropout(x), mask)
        h = torch.cat([h, _stack([self.elmo.output_vector(text) for text in sentences])], dim=2)  # [2 B, T, H]
        composed = self.composition(self.variational_dropout(self._compare(h, mask)), mask)
        pooled = _mean_and_maximum(composed, mask)
        return ClassifierOutput(self.classifier(torch.cat(pooled.chunk(2), dim=1)))

    def _compare(self, x: Tensor, mask: Tensor) -> Tensor:
        """Each token compared with its alignment in the other sentence: ``[2 B, T, H]`` to ``[2 B, T, hidden]``."""
        premise, hypothesis = x.chunk(2)
        alignment = premise @ hypothesis.transpose(1, 2)  # [B, T, T]
        other, other_mask = x.roll(len(premise), dims=0), mask.roll(len(premise), dims=0)
        weights = masked_softmax(torch.cat([alignment, alignment.transpose(1, 2)]), other_mask.unsqueeze(1))
        aligned = weights @ other
        enhanced = torch.cat([x, aligned, x - aligned, x * aligned], dim=2)
        out: Tensor = self.projection(self.attention_dropout(enhanced))
        return out


def _stack(parts: Sequence[Tensor]) -> Tensor:
    """``[B, T, ...]`` and ``[B, U, ...]`` as ``[2 B, max(T, U), ...]``, the shorter padded with zeros."""
    longest = max(part.shape[1] for part in parts)
    out = parts[0].new_zeros(sum(map(len, parts)), longest, *parts[0].shape[2:])
    start = 0
    for part in parts:
        out[start : start + len(part), : part.shape[1]] = part
        start += len(part)
    return out


def _mean_and_maximum(h: Tensor, mask: Tensor) -> Tensor:
    """Over the tokens of each sentence: ``[B, T, H]`` to ``[B, 2 H]``."""
    valid = mask.unsqueeze(2)
    mean = (h * valid).sum(dim=1) / valid.sum(dim=1)
    return torch.cat([mean, h.masked_fill(~valid, -torch.inf).amax(dim=1)], dim=1)
