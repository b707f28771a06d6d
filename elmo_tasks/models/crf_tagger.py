"""The paper's NER model: word vectors and a character CNN, a two-layer biLSTM, a CRF (supplement, A.7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmo_tasks.data.ner import NerBatch
from elmo_tasks.data.tags import bioes_constraints, find_spans, iob2
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import TaskModel
from elmo_tasks.nn.crf import CRF
from elmo_tasks.nn.dropout import VariationalDropout
from elmo_tasks.nn.embedding import CharacterCNN, WordEmbedding
from elmo_tasks.nn.linear import Linear
from elmo_tasks.nn.rnn import BiLSTM
from elmo_tasks.values import Rate, Width


@dataclass
class CrfTaggerOutput:
    """``emissions``: float ``[B, T, K]``, scores of the BIOES tags before the CRF."""

    emissions: Tensor


class CrfTagger(TaskModel):
    """Tags each token; spans are read off the best allowed tag sequence.

    Input ELMo is concatenated to the word vector and the characters, output ELMo to the upper biLSTM's output.
    Variational dropout is on the input of each biLSTM and of the linear layer.

    Args:
        words: the word embedding.
        elmo: where ELMo goes.
        tags: the K BIOES tags.
        char_dim, char_filters, char_width: sizes of the character CNN.
        hidden: cells of a direction, by biLSTM layer.
        dropout: rate of the variational dropout.
    """

    def __init__(
        self,
        *,
        words: WordEmbedding,
        elmo: Elmo,
        tags: Sequence[str],
        char_dim: Width,
        char_filters: Width,
        char_width: Width,
        hidden: Sequence[Width],
        dropout: Rate,
    ) -> None:
        super().__init__()
        self.words, self.elmo, self.tags = words, elmo, list(tags)
        self.characters = CharacterCNN(char_dim=char_dim, widths=[char_width], filters=char_filters)
        dim = words.dim + self.characters.dim + elmo.input_dim
        self.layers = nn.ModuleList()
        for size in hidden:
            self.layers.append(BiLSTM(dim, size))
            dim = 2 * size
        self.dropout = VariationalDropout(dropout)
        self.to_tags = Linear(dim + elmo.output_dim, len(self.tags))
        self.crf = CRF(*bioes_constraints(self.tags))

    def forward(self, batch: NerBatch) -> CrfTaggerOutput:
        text = batch.text
        x = torch.cat([self.words(text), self.characters(text)], dim=2)
        x = self.elmo.at_input(x, text)  # [B, T, E]
        for layer in self.layers:
            x = layer(self.dropout(x), text.mask)  # [B, T, H]
        h = self.elmo.at_output(x, text)
        return CrfTaggerOutput(self.to_tags(self.dropout(h)))

    def loss(self, out: CrfTaggerOutput, batch: NerBatch) -> Tensor:
        """Mean negative log-likelihood of a sentence's tags."""
        return self.crf.loss(out.emissions, batch.tags, batch.text.mask).mean()

    def decode(self, out: CrfTaggerOutput, batch: NerBatch) -> list[list[str]]:
        """IOB2 tags of each sentence."""
        paths = self.crf.decode(out.emissions, batch.text.mask)
        return [iob2(find_spans([self.tags[k] for k in path]), len(path)) for path in paths]
