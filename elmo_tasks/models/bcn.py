"""The biattentive classification network (McCann et al., 2017) with ReLU layers in place of maxout, as in the paper."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_tasks.data.labelled import LabelledBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import Classifier, ClassifierOutput
from elmo_tasks.nn.attention import masked_softmax
from elmo_tasks.nn.dropout import Dropout
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.linear import Linear
from elmo_tasks.nn.rnn import BiLSTM
from elmo_tasks.values import Rate, Width


class BiattentiveClassifier(Classifier):
    """One text attends to itself, an integrating biLSTM reads the result, four poolings feed a classifier.

    Input ELMo is concatenated to the word vector, output ELMo to the encoding biLSTM's output, before the attention.

    Args:
        words: the word embedding.
        elmo: where ELMo goes.
        n_labels: K.
        embedding_dropout: rate on words and input ELMo together.
        pre_encode: width of the ReLU layer before the biLSTM; ``pre_encode_dropout``: rate after it.
        hidden: cells of a direction of both biLSTMs.
        integrator_dropout: rate on the pooled vector.
        classifier: widths of the two ReLU layers; ``classifier_dropout``: rates after them.
    """

    def __init__(
        self,
        *,
        words: WordEmbedding,
        elmo: Elmo,
        n_labels: int,
        embedding_dropout: Rate,
        pre_encode: Width,
        pre_encode_dropout: Rate,
        hidden: Width,
        integrator_dropout: Rate,
        classifier: tuple[Width, Width],
        classifier_dropout: tuple[Rate, Rate],
    ) -> None:
        super().__init__()
        self.words, self.elmo = words, elmo
        self.embedding_dropout = Dropout(embedding_dropout)
        self.pre_encode = nn.Sequential(
            Linear(words.dim + elmo.input_dim, pre_encode), nn.ReLU(), Dropout(pre_encode_dropout)
        )
        self.encoder = BiLSTM(pre_encode, hidden)
        encoded = self.encoder.dim + elmo.output_dim
        self.integrator = BiLSTM(3 * encoded, hidden)
        self.integrator_dropout = Dropout(integrator_dropout)
        self.pool_score = Linear(self.integrator.dim, 1)
        layers: list[nn.Module] = []
        dim = 4 * self.integrator.dim
        for width, rate in zip(classifier, classifier_dropout, strict=True):
            layers += [Linear(dim, width), nn.ReLU(), Dropout(rate)]
            dim = width
        self.classifier = nn.Sequential(*layers, Linear(dim, n_labels))

    def forward(self, batch: LabelledBatch) -> ClassifierOutput:
        text = batch.text
        x = self.embedding_dropout(self.elmo.at_input(self.words(text), text))  # [B, T, E]
        h = self.encoder(self.pre_encode(x), text.mask)
        h = self.elmo.at_output(h, text)  # [B, T, H]
        attention = masked_softmax(h @ h.transpose(1, 2), text.mask.unsqueeze(1))  # [B, T, T]
        context = attention @ h
        integrated = self.integrator(torch.cat([h, h - context, h * context], dim=2), text.mask)
        pooled = self.integrator_dropout(self._pool(integrated, text.mask))
        return ClassifierOutput(self.classifier(pooled))

    def _pool(self, h: Tensor, mask: Tensor) -> Tensor:
        """Maximum, minimum, mean and attention-weighted sum over the tokens: ``[B, T, H]`` to ``[B, 4 H]``."""
        valid = mask.unsqueeze(2)
        highest = h.masked_fill(~valid, -torch.inf).amax(dim=1)
        lowest = h.masked_fill(~valid, torch.inf).amin(dim=1)
        mean = (h * valid).sum(dim=1) / valid.sum(dim=1)
        weights = masked_softmax(self.pool_score(h).squeeze(2), mask)
        return torch.cat([highest, lowest, mean, torch.einsum("bt,bth->bh", weights, h)], dim=1)
