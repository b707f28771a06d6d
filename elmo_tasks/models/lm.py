"""The biLM's training head: next word in both directions, one softmax for both (Peters et al., section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.lstm import State
from elmo_tasks.data.windows import LmBatch
from elmo_tasks.elmo import Elmo
from elmo_tasks.models.base import TaskModel
from elmo_tasks.nn.gather import gather_rows
from elmo_tasks.nn.linear import linear
from elmo_tasks.nn.sampled_softmax import sampled_softmax_loss
from elmo_tasks.values import Probability, Rate, Size

EVERY_WORD = 10**9
"""A number of draws so large that every word is certain to be a candidate; the logits then need no correction."""

_LOGITS = 20_000_000  # logits held at once by the full softmax


@dataclass
class LmOutput:
    """``hidden``: float ``[2, S, B, P]``, the top LSTM layer by reading direction."""

    hidden: Tensor


class LanguageModel(TaskModel):
    """A biLM with a softmax over its vocabulary, trained on windows with carried state.

    Training uses a sampled softmax with log-uniform candidates, as bilm-tf does; scores use the full softmax.
    The loss is multiplied by the window's length before the gradient is taken, as bilm-tf does too: with Adagrad's
    initial accumulator of 1 the scale matters.

    Args:
        bilm: the model to train.
        vocabulary_size: number of words that the softmax predicts, most frequent first.
        n_samples: number of candidates of the sampled softmax, shared by all positions of a window; as many as
            words, or more, for the full softmax.
        dropout: on the input of each LSTM layer and on the top layer.
        forget: probability that a row starts a training window from zeros. Without it (bilm-tf) only the first
            window starts from zeros, and a biLM may never learn to read from them, as ``bilm.state=reset`` does.
    """

    def __init__(
        self, *, bilm: BiLM, vocabulary_size: int, n_samples: Size, dropout: Rate, forget: Probability = 0.0
    ) -> None:
        super().__init__()
        self.bilm, self.elmo = bilm, Elmo(placement="none", n_layers=0, dim=0)
        self.n_samples = min(n_samples, vocabulary_size)
        self.dropout, self.forget = dropout, forget
        width = bilm.options.projection_dim
        self.softmax_weight = nn.Parameter(torch.randn(vocabulary_size, width) / width**0.5)
        self.softmax_bias = nn.Parameter(torch.zeros(vocabulary_size))
        # candidates have their own generator: processes with different dropout masks draw the same candidates
        self.rng = torch.Generator().manual_seed(torch.initial_seed())
        self.carried: list[State] | None = None  # final state of the last training window
        self._heldout: list[State] | None = None

    def forward(self, batch: LmBatch) -> LmOutput:
        """Read one window from the final state of the last one; training and scoring keep separate states."""
        n_rows = batch.valid.shape[1]
        table = self.bilm.encoder(batch.char_ids).to(self.softmax_weight.dtype)  # its gradient is a sum over many rows
        states = self.carried if self.training else self._heldout
        if states is None or states[0][0].shape[1] != n_rows:
            states = self.bilm.initial_states(n_rows)
        states = [(h.to(table.device), c.to(table.device)) for h, c in states]  # a restored state is on the CPU
        out, finals = self.read(F.embedding(batch.words, table), states)
        if self.training:
            self.carried = finals
        else:
            self._heldout = finals
        return out

    def read(self, x: Tensor, states: Sequence[State]) -> tuple[LmOutput, list[State]]:
        """Run the LSTMs over token vectors; in training with dropout and random resets of rows.

        Args:
            x: ``[2, S, B, P]``, each direction in its reading order.
            states: initial state of each row, by LSTM layer.

        Returns:
            the output and the final states, by LSTM layer.
        """
        _, n_steps, n_rows, _ = x.shape
        if self.training and self.forget > 0:
            kept = (torch.rand(n_rows, 1, device=x.device) >= self.forget).to(x.dtype)  # [B, 1]
            states = [(h * kept, c * kept) for h, c in states]
        x, finals = x.flatten(1, 2), []  # [2, S * B, P]
        for k, (lstm, state) in enumerate(zip(self.bilm.lstms, states, strict=True)):
            out, (h, c) = lstm(F.dropout(x, self.dropout, self.training), [n_rows] * n_steps, state)
            x = out + x if self.bilm.options.skip_connections and k > 0 else out
            finals.append((h.detach(), c.detach()))
        hidden = F.dropout(x, self.dropout, self.training)
        return LmOutput(hidden.view(2, n_steps, n_rows, -1)), finals

    def train(self, mode: bool = True) -> LanguageModel:
        """Switch modes. Each scoring starts from zeros; the training state is kept."""
        if not mode:
            self._heldout = None
        super().train(mode)
        return self

    def loss(self, out: LmOutput, batch: LmBatch) -> Tensor:
        """Mean sampled-softmax loss over the positions of both directions, times the window's length: float ``[]``."""
        samples, tries = log_uniform_sample(self.n_samples, len(self.softmax_bias), self.rng)
        return self.sampled_loss(out.hidden, batch.targets, samples.to(out.hidden.device), tries)

    def sampled_loss(self, hidden: Tensor, targets: Tensor, samples: Tensor, tries: int | Tensor) -> Tensor:
        """The loss with given candidates, without a GPU synchronisation.

        Args:
            hidden: ``[2, S, B, P]``.
            targets: long ``[2, S, B]``.
            samples: long ``[K]``, distinct words.
            tries: number of draws that gave them, an int or a float64 scalar. As candidates are distinct, logits
                are corrected by the log of the expected count in that many draws, not by the log probability.

        Returns:
            float ``[]``, as :meth:`loss`.
        """
        n_steps, vocabulary_size = hidden.shape[1], len(self.softmax_bias)
        hidden, targets = hidden.flatten(0, 2), targets.flatten()
        candidates, n = torch.cat([samples, targets]), len(samples)
        weight = gather_rows(self.softmax_weight, candidates)
        bias = gather_rows(self.softmax_bias.unsqueeze(1), candidates).squeeze(1)
        bias = bias - log_expected_count(candidates, tries, vocabulary_size)
        target_scores = (hidden * weight[n:]).sum(dim=1) + bias[n:]
        columns = samples.new_full((vocabulary_size,), -1)
        columns[samples] = torch.arange(n, device=samples.device)
        mean = sampled_softmax_loss(hidden, target_scores, weight[:n], bias[:n], columns[targets])
        return mean * n_steps

    def decode(self, out: LmOutput, batch: LmBatch) -> Tensor:
        """Negative log-likelihood of each valid position with the full softmax, ``[2, n]`` by direction."""
        targets = batch.targets[:, batch.valid]  # [2, n]
        hidden, words = out.hidden[:, batch.valid].float().flatten(0, 1), targets.flatten()
        losses = hidden.new_empty(len(words))  # made first: else they would split up the memory of the logits
        n_rows = max(1, _LOGITS // len(self.softmax_bias))
        for start in range(0, len(words), n_rows):
            rows = slice(start, start + n_rows)
            logits = linear(hidden[rows], self.softmax_weight, self.softmax_bias)
            losses[rows] = F.cross_entropy(logits, words[rows], reduction="none")
        return losses.view_as(targets)


def log_uniform_sample(n: int, vocabulary_size: int, rng: torch.Generator) -> tuple[Tensor, int]:
    """Draw word ids log-uniformly until ``n`` are distinct; low ids, the frequent words, are more probable.

    Returns:
        long ``[n]``, and the number of draws.
    """
    if n == vocabulary_size:  # the last rare words would take millions of draws
        return torch.arange(n), EVERY_WORD
    drawn = torch.empty(0, dtype=torch.long)
    while True:
        more = (torch.rand(4 * n, dtype=torch.float64, generator=rng) * math.log(vocabulary_size + 1)).exp().long() - 1
        drawn = torch.cat([drawn, more.clamp_(0, vocabulary_size - 1)])
        distinct, inverse = torch.unique(drawn, return_inverse=True)
        if len(distinct) >= n:
            break
    first = torch.full((len(distinct),), len(drawn)).scatter_reduce(0, inverse, torch.arange(len(drawn)), "amin")
    first_draws = first.sort().values[:n]
    return drawn[first_draws], int(first_draws[-1]) + 1


def log_expected_count(ids: Tensor, tries: int | Tensor, vocabulary_size: int) -> Tensor:
    """Logarithm of how often each id is expected among the distinct ids of ``tries`` log-uniform draws (at most once).

    Args:
        ids: long ``[n]``.
        tries: number of draws, an int or a float64 scalar.
        vocabulary_size: number of words.

    Returns:
        float ``[n]``.
    """
    rank = ids.double()
    probability = ((rank + 2) / (rank + 1)).log() / math.log(vocabulary_size + 1)
    return (-torch.expm1(tries * torch.log1p(-probability))).log().float()
