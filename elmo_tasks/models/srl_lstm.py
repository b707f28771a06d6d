"""Deep semantic role labelling: alternating LSTMs with highway connections (He et al., 2017), as the paper has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.data.srl import SrlBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import TaskModel
from elmo_tasks.nn.bio import best_bio_tags
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.highway_lstm import AlternatingLSTM
from elmo_tasks.nn.linear import Linear
from elmo_tasks.values import Depth, Rate, Width


@dataclass
class SrlOutput:
    """``scores``: float ``[B, N_p, T, K]``, of the tags for each predicate; zero beyond a sentence's predicates."""

    scores: Tensor


class SrlLstm(TaskModel):
    """Tags the arguments of one predicate at a time.

    A sentence's word vectors and input ELMo are computed once, and read once for each of its predicates, with an
    embedding that marks the predicate. Output ELMo is concatenated to the last LSTM's output.

    Args:
        words: the word embedding.
        elmo: where ELMo goes.
        tags: the K IOB2 tags.
        indicator_dim: size of the embedding that marks the predicate.
        hidden: cells of each LSTM.
        n_layers: number of LSTMs, which read from left to right and from right to left in turn.
        dropout: rate of the variational dropout on the LSTMs' hidden states.
    """

    def __init__(
        self,
        *,
        words: WordEmbedding,
        elmo: Elmo,
        tags: Sequence[str],
        indicator_dim: Width,
        hidden: Width,
        n_layers: Depth,
        dropout: Rate,
    ) -> None:
        super().__init__()
        self.words, self.elmo, self.tags = words, elmo, list(tags)
        self.indicator = nn.Embedding(2, indicator_dim)
        self.lstm = AlternatingLSTM(words.dim + elmo.input_dim + indicator_dim, hidden, n_layers, dropout)
        self.to_tags = Linear(hidden + elmo.output_dim, len(self.tags))
        nn.init.orthogonal_(self.to_tags.weight)

    def forward(self, batch: SrlBatch) -> SrlOutput:
        text = batch.text
        sentence = batch.valid.nonzero()[:, 0]  # [N], of each of the batch's predicates
        x = self.elmo.at_input(self.words(text), text)[sentence]  # [N, T, E]
        is_predicate = torch.arange(x.shape[1], device=x.device) == batch.predicates.unsqueeze(1)
        x = torch.cat([x, self.indicator(is_predicate.long())], dim=2)
        h = self.lstm(x, text.mask[sentence])  # [N, T, H]
        h = torch.cat([h, self.elmo.output_vector(text)[sentence]], dim=2)
        scores = self.to_tags(h)
        out = scores.new_zeros(*batch.valid.shape, *scores.shape[1:])
        return SrlOutput(out.index_put((*batch.valid.nonzero(as_tuple=True),), scores))

    def loss(self, out: SrlOutput, batch: SrlBatch) -> Tensor:
        """Cross-entropy of a token's tag: mean over a sentence's tokens, then over predicates."""
        scores = out.scores[batch.valid]  # [N, T, K]
        mask = batch.text.mask[batch.valid.nonzero()[:, 0]]
        losses = F.cross_entropy(scores.flatten(0, 1), batch.tags.flatten(), reduction="none").view_as(mask)
        return ((losses * mask).sum(dim=1) / mask.sum(dim=1)).mean()

    def loss_weight(self, batch: SrlBatch) -> int:
        """The number of predicates."""
        return len(batch.predicates)

    def decode(self, out: SrlOutput, batch: SrlBatch) -> list[list[list[str]]]:
        """The best allowed IOB2 tags for each predicate of each sentence."""
        mask = batch.text.mask[batch.valid.nonzero()[:, 0]]
        paths = iter(best_bio_tags(out.scores[batch.valid], mask, self.tags))
        counts = batch.valid.sum(dim=1).tolist()
        return [[[self.tags[k] for k in next(paths)] for _ in range(count)] for count in counts]
