"""BiDAF with self-attention and GRUs (Clark and Gardner, 2017), the paper's model for SQuAD."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.batch import Text
from elmo_tasks.data.squad import SquadBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import TaskModel
from elmo_tasks.nn.attention import Trilinear, masked_softmax, masked_softmax_with_null
from elmo_tasks.nn.dropout import VariationalDropout
from elmo_tasks.nn.embedding import CharacterCNN, WordEmbedding
from elmo_tasks.nn.gru import BiGRU
from elmo_tasks.nn.linear import Linear, linear
from elmo_tasks.values import Rate, Size, Width

_NULL_SCORE = -1.0  # of the self-attention, before training
_CHARACTER_BOUND = 0.05  # character embeddings start between minus this and this


@dataclass
class SpanOutput:
    """Of an answer's first and its last token.

    Attributes:
        starts, ends: log-probabilities, ``[B, T]``, -inf on padding.
        total: ``[B]``, what was subtracted from the scores of both tokens to make them log-probabilities.
    """

    starts: Tensor
    ends: Tensor
    total: Tensor


class Bidaf(TaskModel):
    """Points at the first and the last token of an answer.

    One GRU reads question and context. The context attends to the question (both ways, section 3.3 of Seo et al.,
    2017), then to itself in a residual block; two GRUs, one on top of the other, predict the ends of the answer.
    Variational dropout is on the input and the output of the GRUs before the attentions, and on what the pointer GRUs
    read. Input ELMo is concatenated to words and characters. Output ELMo is concatenated to the first GRU's output,
    after the dropout: it has its own dropout.

    Args:
        words: the word embedding.
        elmo: where ELMo goes; question and context share its mixes.
        char_dim, char_filters, char_width: sizes of the character CNN.
        char_dropout: rate on the characters' embeddings.
        hidden: cells of a direction of every GRU.
        linear: width of the layers after the attentions.
        dropout: rate of the variational dropout.
        max_answer_tokens: longest answer that is predicted.
    """

    def __init__(
        self,
        *,
        words: WordEmbedding,
        elmo: Elmo,
        char_dim: Width,
        char_filters: Width,
        char_width: Width,
        char_dropout: Rate,
        hidden: Width,
        linear: Width,
        dropout: Rate,
        max_answer_tokens: Size,
    ) -> None:
        super().__init__()
        self.words, self.elmo, self.max_answer_tokens = words, elmo, max_answer_tokens
        self.characters = CharacterCNN(
            char_dim=char_dim,
            widths=[char_width],
            filters=char_filters,
            dropout=char_dropout,
            init_bound=_CHARACTER_BOUND,
        )
        self.dropout = VariationalDropout(dropout)
        self.encoder = BiGRU(words.dim + self.characters.dim + elmo.input_dim, hidden)
        encoded = self.encoder.dim + elmo.output_dim
        self.similarity = Trilinear(encoded)
        self.after_attention = Linear(4 * encoded, linear)
        self.self_encoder = BiGRU(linear, hidden)
        self.self_similarity = Trilinear(self.self_encoder.dim)
        self.null_score = nn.Parameter(torch.tensor(_NULL_SCORE))
        self.after_self_attention = nn.Sequential(Linear(3 * self.self_encoder.dim, linear), nn.ReLU())
        self.start_encoder = BiGRU(linear, hidden)
        self.start_score = Linear(self.start_encoder.dim, 1)
        self.end_encoder = BiGRU(linear + self.start_encoder.dim, hidden)
        self.end_score = Linear(self.end_encoder.dim, 1)

    def forward(self, batch: SquadBatch) -> SpanOutput:
        mask = batch.context.mask
        question = self._encode(batch.question)  # [B, Q, H]
        context = self._encode(batch.context)  # [B, T, H]
        x = self._attend(context, question, mask, batch.question.mask)
        x = self.dropout(x + self._attend_to_itself(x, mask))  # one mask for both pointers
        starts = self.start_encoder(x, mask)
        ends = self.end_encoder(torch.cat([x, starts], dim=2), mask)
        start_scores, end_scores = _masked(self.start_score(starts), mask), _masked(self.end_score(ends), mask)
        total = start_scores.detach().logsumexp(dim=1) + end_scores.detach().logsumexp(dim=1)
        return SpanOutput(_over_tokens(start_scores, mask), _over_tokens(end_scores, mask), total)

    def _encode(self, text: Text) -> Tensor:
        """A text's tokens in context, ``[B, T, H]``."""
        x = torch.cat([self.words(text), self.characters(text)], dim=2)
        h = self.encoder(self.dropout(self.elmo.at_input(x, text)), text.mask)
        return self.elmo.at_output(self.dropout(h), text)

    def _attend(self, context: Tensor, question: Tensor, mask: Tensor, question_mask: Tensor) -> Tensor:
        """A ReLU layer over ``[context; c2q; context * c2q; q2c * c2q]``, ``[B, T, linear]``.

        ``c2q`` is the context-to-question attention, a vector for each token of the context, ``q2c`` the
        question-to-context attention, one vector for all of them. The weight's four blocks are multiplied separately:
        nothing of width 4 H is built, and the two blocks that are linear in ``c2q`` (a weighted sum of the question's
        tokens) are applied to the few tokens of the question.
        """
        scores = self.similarity(context, question)  # [B, T, Q]
        weights = masked_softmax(scores, question_mask.unsqueeze(1))
        c2q = weights @ question  # [B, T, H]
        highest = scores.masked_fill(~question_mask.unsqueeze(1), -torch.inf).amax(dim=2)
        q2c = masked_softmax(highest, mask).unsqueeze(1) @ context  # [B, 1, H]
        w_context, w_c2q, w_product, w_q2c = self.after_attention.weight.chunk(4, dim=1)  # [linear, H] each
        question_part = linear(question, w_c2q) + linear(q2c * question, w_q2c)  # [B, Q, linear]
        out = linear(context, w_context, self.after_attention.bias) + linear(context * c2q, w_product)
        return F.relu(out + weights @ question_part)

    def _attend_to_itself(self, x: Tensor, mask: Tensor) -> Tensor:
        """What the residual block adds, ``[B, T, linear]``.

        No token attends to itself; it may attend to nothing, at a learned score.
        """
        h = self.dropout(self.self_encoder(self.dropout(x), mask))
        others = mask.unsqueeze(1) & ~torch.eye(h.shape[1], dtype=torch.bool, device=h.device)  # [B, T, T]
        attended = masked_softmax_with_null(self.self_similarity(h, h), others, self.null_score) @ h
        added: Tensor = self.after_self_attention(torch.cat([h, attended, h * attended], dim=2))
        return added

    def loss(self, out: SpanOutput, batch: SquadBatch) -> Tensor:
        """Mean negative log-likelihood of an answer's first token, plus that of its last."""
        return F.nll_loss(out.starts, batch.starts) + F.nll_loss(out.ends, batch.ends)

    def log_probabilities(self, out: SpanOutput, batch: SquadBatch) -> Tensor:
        """Log-probability of each span, by first token and number of further tokens: ``[B, T, max_answer_tokens]``."""
        ends = F.pad(out.ends, (0, self.max_answer_tokens - 1), value=-torch.inf)
        return out.starts.unsqueeze(2) + ends.unfold(1, self.max_answer_tokens, 1)

    def choose(self, log_probabilities: Tensor, batch: SquadBatch) -> list[str]:
        """The text of the most probable span of each context."""
        best = log_probabilities.flatten(1).argmax(dim=1)
        firsts, further = (best // self.max_answer_tokens).tolist(), (best % self.max_answer_tokens).tolist()
        return [
            paragraph.text(first, first + n_further)
            for paragraph, first, n_further in zip(batch.paragraphs, firsts, further, strict=True)
        ]

    def decode(self, out: SpanOutput, batch: SquadBatch) -> list[str]:
        return self.choose(self.log_probabilities(out, batch), batch)

    def scores(self, out: SpanOutput, batch: SquadBatch) -> Tensor:
        """The score of each chosen span before the softmax, by which paragraphs compare (Clark and Gardner, 2017)."""
        return self.log_probabilities(out, batch).flatten(1).amax(dim=1) + out.total


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    """``[B, T, 1]`` to ``[B, T]``, with the least number on padding."""
    return scores.squeeze(2).masked_fill(~mask, torch.finfo(scores.dtype).min)


def _over_tokens(scores: Tensor, mask: Tensor) -> Tensor:
    """Scores ``[B, T]`` to log-probabilities over a text's tokens."""
    return scores.log_softmax(dim=1).masked_fill(~mask, -torch.inf)
