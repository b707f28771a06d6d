"""ESIM, the enhanced sequential inference model (Chen et al., 2017), as the paper has it for SNLI."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.batch import Text
from elmo_tasks.data.snli import SnliBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import ClassifierOutput
from elmo_tasks.nn.attention import masked_softmax
from elmo_tasks.nn.dropout import Dropout, VariationalDropout
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.linear import Linear
from elmo_tasks.nn.rnn import BiLSTM


class Esim(nn.Module):
    """Aligns the words of premise and hypothesis, compares each with what it is aligned to, and composes.

    One biLSTM encodes both sentences and one composes both. Input ELMo stands beside the word vector, output ELMo
    beside the encoding biLSTM's output, before the attention.

    Args:
        words: the word embedding.
        elmo: where ELMo goes.
        n_labels: K.
        hidden: cells of a direction of both biLSTMs, and width of both ReLU layers.
        dropout: rate of the variational dropout at each biLSTM's input, and of the dropout before the last two layers.
    """

    def __init__(self, *, words: WordEmbedding, elmo: Elmo, n_labels: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.words, self.elmo = words, elmo
        self.variational_dropout = VariationalDropout(dropout)
        self.encoder = BiLSTM(words.dim + elmo.input_dim, hidden)
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
        premise, hypothesis = batch.premise, batch.hypothesis
        p, h = self._encode(premise), self._encode(hypothesis)  # [B, T, H], [B, U, H]
        alignment = p @ h.transpose(1, 2)  # [B, T, U]
        of_p = masked_softmax(alignment, hypothesis.mask.unsqueeze(1)) @ h
        of_h = masked_softmax(alignment.transpose(1, 2), premise.mask.unsqueeze(1)) @ p
        pooled = [*self._compose(p, of_p, premise.mask), *self._compose(h, of_h, hypothesis.mask)]
        return ClassifierOutput(self.classifier(torch.cat(pooled, dim=1)))

    def _encode(self, text: Text) -> Tensor:
        """A sentence's words in context, ``[B, T, H]``."""
        x = self.elmo.at_input(self.words(text), text)  # [B, T, E]
        h = self.encoder(self.variational_dropout(x), text.mask)
        return self.elmo.at_output(h, text)

    def _compose(self, x: Tensor, aligned: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and maximum over a sentence's words of what the composing biLSTM makes of them, ``[B, H]`` each."""
        enhanced = torch.cat([x, aligned, x - aligned, x * aligned], dim=2)
        composed = self.composition(self.variational_dropout(self.projection(enhanced)), mask)
        real = mask.unsqueeze(2)
        mean = (composed * real).sum(dim=1) / real.sum(dim=1)
        return mean, composed.masked_fill(~real, -torch.inf).amax(dim=1)

    def loss(self, out: ClassifierOutput, batch: SnliBatch) -> Tensor:
        """Mean cross-entropy."""
        return F.cross_entropy(out.logits, batch.labels)

    def log_probabilities(self, out: ClassifierOutput, batch: SnliBatch) -> Tensor:
        """Of each label, ``[B, K]``."""
        return out.logits.log_softmax(dim=1)

    def choose(self, log_probabilities: Tensor, batch: SnliBatch) -> list[int]:
        """The most probable label of each pair."""
        labels: list[int] = log_probabilities.argmax(dim=1).tolist()
        return labels

    def decode(self, out: ClassifierOutput, batch: SnliBatch) -> list[int]:
        return self.choose(self.log_probabilities(out, batch), batch)
