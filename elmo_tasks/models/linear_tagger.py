"""One linear layer on frozen vectors, the probe of section 5.3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from elmo_tasks.batch import IGNORE_INDEX
from elmo_tasks.data.pos import PosBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import TaskModel
from elmo_tasks.nn.embedding import WordEmbedding
from elmo_tasks.nn.linear import Linear


@dataclass
class LinearTaggerOutput:
    """``logits``: float ``[B, T, K]``."""

    logits: Tensor


class LinearTagger(TaskModel):
    """Tags each word by its word vector (none with ``words=none``) and its ELMo vector.

    There is no encoder between ELMo's two places; both are the same.

    Args:
        words: the word embedding.
        elmo: where ELMo goes.
        tags: the K tags.
    """

    def __init__(self, *, words: WordEmbedding, elmo: Elmo, tags: Sequence[str]) -> None:
        super().__init__()
        self.words, self.elmo, self.tags = words, elmo, list(tags)
        self.to_tags = Linear(words.dim + elmo.input_dim + elmo.output_dim, len(self.tags))

    def forward(self, batch: PosBatch) -> LinearTaggerOutput:
        x = self.elmo.at_input(self.words(batch.text), batch.text)  # [B, T, E]
        return LinearTaggerOutput(self.to_tags(self.elmo.at_output(x, batch.text)))

    def loss(self, out: LinearTaggerOutput, batch: PosBatch) -> Tensor:
        """Mean negative log-likelihood of a word's tag."""
        return F.cross_entropy(out.logits.flatten(0, 1), batch.tags.flatten(), ignore_index=IGNORE_INDEX)

    def loss_weight(self, batch: PosBatch) -> int:
        """The number of words that have a tag."""
        return int((batch.tags != IGNORE_INDEX).sum())

    def decode(self, out: LinearTaggerOutput, batch: PosBatch) -> list[list[str]]:
        """The tags of each sentence."""
        rows = out.logits.argmax(dim=2).tolist()
        return [[self.tags[k] for k in row[: len(words)]] for row, words in zip(rows, batch.text.tokens, strict=True)]
