"""BiDAF with self-attention and GRUs (Clark and Gardner, 2017), the paper's model for SQuAD."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.batch import Text
from elmo_tasks.data.squad import SquadBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.nn.attention import Trilinear, masked_softmax
from elmo_tasks.nn.dropout import VariationalDropout
from elmo_tasks.nn.embedding import CharacterCNN, WordEmbedding
from elmo_tasks.nn.gru import BiGRU
from elmo_tasks.nn.linear import Linear, linear


@dataclass
class SpanOutput:
    """``starts``, ``ends``: log-probabilities of an answer's first and last token, ``[B, T]``, -inf on padding."""

    starts: Tensor
    ends: Tensor


class Bidaf(nn.Module):
    """Points at the first and the last token of an answer.

    One GRU reads question and context. The context attends to the question (both ways, section 3.3 of Seo et al.,
    2017), then to itself in a residual block; two GRUs, one over the other, give the ends of the answer. Variational
    dropout is on the input of each GRU and of both attentions. Input ELMo stands beside words and characters, output
    ELMo beside the output of the GRU that reads question and context.

    Args:
        words: the word embedding.
        elmo: where ELMo goes; question and context share its mixes.
        char_dim, char_filters, char_width: sizes of the character CNN.
        hidden: cells of a direction of every GRU.
        linear: width of the layers behind the attentions.
        dropout: rate of the variational dropout.
        max_answer_tokens: longest answer that is predicted.
    """

    def __init__(
        self,
        *,
        words: WordEmbedding,
        elmo: Elmo,
        char_dim: int,
        char_filters: int,
        char_width: int,
        hidden: int,
        linear: int,
        dropout: float,
        max_answer_tokens: int,
    ) -> None:
        super().__init__()
        self.words, self.elmo, self.max_answer_tokens = words, elmo, max_answer_tokens
        self.characters = CharacterCNN(char_dim=char_dim, widths=[char_width], filters=char_filters)
        self.dropout = VariationalDropout(dropout)
        self.encoder = BiGRU(words.dim + self.characters.dim + elmo.input_dim, hidden)
        encoded = self.encoder.dim + elmo.output_dim
        self.similarity = Trilinear(encoded)
        self.after_attention = Linear(4 * encoded, linear)
        self.self_encoder = BiGRU(linear, hidden)
        self.self_similarity = Trilinear(self.self_encoder.dim)
        self.after_self_attention = nn.Sequential(Linear(3 * self.self_encoder.dim, linear), nn.ReLU())
        self.start_encoder = BiGRU(linear, hidden)
        self.start_score = Linear(self.start_encoder.dim, 1)
        self.end_encoder = BiGRU(linear + self.start_encoder.dim, hidden)
        self.end_score = Linear(self.end_encoder.dim, 1)

    def forward(self, batch: SquadBatch) -> SpanOutput:
        mask = batch.context.mask
        question = self.dropout(self._encode(batch.question))  # [B, Q, H]
        context = self.dropout(self._encode(batch.context))  # [B, T, H]
        x = self._attend(context, question, mask, batch.question.mask)
        x = x + self._attend_to_itself(x, mask)
        starts = self.start_encoder(self.dropout(x), mask)
        ends = self.end_encoder(self.dropout(torch.cat([x, starts], dim=2)), mask)
        return SpanOutput(_over_tokens(self.start_score(starts), mask), _over_tokens(self.end_score(ends), mask))

    def _encode(self, text: Text) -> Tensor:
        """A text's words in context, ``[B, T, H]``."""
        x = torch.cat([self.words(text), self.characters(text)], dim=2)
        h = self.encoder(self.dropout(self.elmo.at_input(x, text)), text.mask)
        return self.elmo.at_output(h, text)

    def _attend(self, context: Tensor, question: Tensor, mask: Tensor, question_mask: Tensor) -> Tensor:
        """A ReLU layer over ``[context; seen; context * seen; wanted * seen]``, ``[B, T, linear]``.

        ``seen`` is what a context word sees of the question, ``wanted`` what the question sees of the context. The
        layer's four blocks are multiplied apart: nothing of width 4 H is built, and the two blocks that ``seen`` enters
        linearly go by way of the question's few words.
        """
        scores = self.similarity(context, question)  # [B, T, Q]
        weights = masked_softmax(scores, question_mask.unsqueeze(1))
        seen = weights @ question  # [B, T, H]
        highest = scores.masked_fill(~question_mask.unsqueeze(1), -torch.inf).amax(dim=2)
        wanted = masked_softmax(highest, mask).unsqueeze(1) @ context  # [B, 1, H]
        of_context, of_seen, of_product, of_wanted = self.after_attention.weight.chunk(4, dim=1)  # [linear, H] each
        by_question = linear(question, of_seen) + linear(wanted * question, of_wanted)  # [B, Q, linear]
        out = linear(context, of_context, self.after_attention.bias) + linear(context * seen, of_product)
        return F.relu(out + weights @ by_question)

    def _attend_to_itself(self, x: Tensor, mask: Tensor) -> Tensor:
        """What the residual block adds, ``[B, T, linear]``; no word attends to itself."""
        h = self.dropout(self.self_encoder(self.dropout(x), mask))
        others = mask.unsqueeze(1) & ~torch.eye(h.shape[1], dtype=torch.bool, device=h.device)  # [B, T, T]
        seen = masked_softmax(self.self_similarity(h, h), others) @ h
        added: Tensor = self.after_self_attention(torch.cat([h, seen, h * seen], dim=2))
        return added

    def loss(self, out: SpanOutput, batch: SquadBatch) -> Tensor:
        """Mean negative log-likelihood of an answer's first and last token."""
        return F.nll_loss(out.starts, batch.starts) + F.nll_loss(out.ends, batch.ends)

    def log_probabilities(self, out: SpanOutput, batch: SquadBatch) -> Tensor:
        """Of each span, by first token and by tokens beyond it: ``[B, T, max_answer_tokens]``."""
        beyond = F.pad(out.ends, (0, self.max_answer_tokens - 1), value=-torch.inf)
        return out.starts.unsqueeze(2) + beyond.unfold(1, self.max_answer_tokens, 1)

    def choose(self, log_probabilities: Tensor, batch: SquadBatch) -> list[str]:
        """The text of the most probable span of each context."""
        best = log_probabilities.flatten(1).argmax(dim=1)
        firsts, more = (best // self.max_answer_tokens).tolist(), (best % self.max_answer_tokens).tolist()
        return [
            paragraph.text(first, first + beyond)
            for paragraph, first, beyond in zip(batch.paragraphs, firsts, more, strict=True)
        ]

    def decode(self, out: SpanOutput, batch: SquadBatch) -> list[str]:
        return self.choose(self.log_probabilities(out, batch), batch)


def _over_tokens(scores: Tensor, mask: Tensor) -> Tensor:
    """``[B, T, 1]`` to log-probabilities ``[B, T]`` over a text's tokens."""
    scores = scores.squeeze(2).masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.log_softmax(dim=1).masked_fill(~mask, -torch.inf)
