"""The biLM's training head: next word in both directions, one softmax for both (Peters et al., section 3.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.lstm import State
from elmo_tasks.data.windows import LmBatch
from elmo_tasks.nn.linear import linear

_LOGITS = 20_000_000  # logits held at once by the full softmax


@dataclass
class LmOutput:
    """``hidden``: float ``[2, S, B, P]``, the top LSTM layer by reading direction."""

    hidden: Tensor


class LanguageModel(nn.Module):
    """A biLM with a softmax over its vocabulary, trained on windows with carried state.

    Training uses a sampled softmax with log-uniform candidates, as bilm-tf does; scores use the full softmax.
    The loss is multiplied by the window's length before the gradient is taken, as bilm-tf does too: with Adagrad's
    initial accumulator of 1 the scale matters.

    Args:
        bilm: the model to train.
        vocabulary_size: words that the softmax predicts, by falling frequency.
        n_samples: candidates of the sampled softmax, shared by all positions of a window.
        dropout: on the input of each LSTM layer and on the top layer.
        forget: chance that a row starts a training window from zeros. Without it (bilm-tf) zeros are met in the very
            first window alone, and a biLM may never learn to read on from them, as ``bilm.state=reset`` has it.
    """

    def __init__(
        self, *, bilm: BiLM, vocabulary_size: int, n_samples: int, dropout: float, forget: float = 0.0
    ) -> None:
        super().__init__()
        self.bilm = bilm
        self.n_samples = min(n_samples, vocabulary_size - 1)
        self.dropout, self.forget = dropout, forget
        width = bilm.options.projection_dim
        self.softmax_weight = nn.Parameter(torch.randn(vocabulary_size, width) / width**0.5)
        self.softmax_bias = nn.Parameter(torch.zeros(vocabulary_size))
        # of the candidates: its own, so that processes that drop out different units draw the same candidates
        self.chance = torch.Generator().manual_seed(torch.initial_seed())
        self.carried: list[State] | None = None  # where the last training window ended
        self._heldout: list[State] | None = None

    def forward(self, batch: LmBatch) -> LmOutput:
        """Read one window, from where this mode's last window ended."""
        n_steps, n_rows = batch.real.shape
        table = self.bilm.encoder(batch.char_ids)
        x = F.embedding(batch.words.flatten(1), table)  # [2, S * B, P]
        states = self.carried if self.training else self._heldout
        if states is None or states[0][0].shape[1] != n_rows:
            states = self.bilm.initial_states(n_rows)
        if self.training and self.forget > 0:
            kept = (torch.rand(n_rows, 1) >= self.forget).float()  # [B, 1]
            states = [(h * kept.to(h.device), c * kept.to(c.device)) for h, c in states]
        finals = []
        for k, (lstm, (h, c)) in enumerate(zip(self.bilm.lstms, states, strict=True)):
            state = h.to(x.device), c.to(x.device)  # a saved one comes back on the CPU
            out, final = lstm(F.dropout(x, self.dropout, self.training), [n_rows] * n_steps, state)
            x = out + x if self.bilm.options.skip_connections and k > 0 else out
            finals.append((final[0].detach(), final[1].detach()))
        if self.training:
            self.carried = finals
        else:
            self._heldout = finals
        hidden = F.dropout(x, self.dropout, self.training)
        return LmOutput(hidden.view(2, n_steps, n_rows, -1))

    def train(self, mode: bool = True) -> LanguageModel:
        """Held-out text starts from zeros each time it is read; the training state stays."""
        if not mode:
            self._heldout = None
        super().train(mode)
        return self

    def loss(self, out: LmOutput, batch: LmBatch) -> Tensor:
        """Mean sampled-softmax loss over both directions, times the window's length."""
        hidden, targets = out.hidden.flatten(0, 2), batch.targets.flatten()
        samples, tries = log_uniform_sample(self.n_samples, len(self.softmax_bias), self.chance)
        samples = samples.to(hidden.device)
        candidates = torch.cat([samples, targets])
        weight = F.embedding(candidates, self.softmax_weight).to(hidden.dtype)
        # the expected count of a candidate takes the place of its probability, since candidates are distinct
        correction = log_expected_count(candidates, tries, len(self.softmax_bias))
        bias = F.embedding(candidates, self.softmax_bias.unsqueeze(1)).squeeze(1) - correction
        n = len(samples)
        of_samples = linear(hidden, weight[:n]).float() + bias[:n]
        of_target = (hidden * weight[n:]).float().sum(dim=1) + bias[n:]
        place = samples.new_full((len(self.softmax_bias),), -1)
        place[samples] = torch.arange(n, device=samples.device)
        hits = place[targets]  # a candidate that is the target itself must not count against it
        rows = (hits >= 0).nonzero().squeeze(1)
        of_samples = of_samples.index_put((rows, hits[rows]), of_samples.new_tensor(-math.inf))
        total = torch.logaddexp(torch.logsumexp(of_samples, dim=1), of_target)
        return (total - of_target).mean() * batch.real.shape[0]

    def decode(self, out: LmOutput, batch: LmBatch) -> Tensor:
        """Negative log-likelihood of each real position with the full softmax, ``[2, n]`` by direction."""
        hidden = out.hidden[:, batch.real].float()  # [2, n, P]
        targets = batch.targets[:, batch.real]
        rows = max(1, _LOGITS // len(self.softmax_bias))
        losses = [
            F.cross_entropy(linear(h, self.softmax_weight, self.softmax_bias), t, reduction="none")
            for h, t in zip(torch.split(hidden.flatten(0, 1), rows), torch.split(targets.flatten(), rows), strict=True)
        ]
        return torch.cat(losses).view_as(targets)


def log_uniform_sample(n: int, vocabulary_size: int, chance: torch.Generator) -> tuple[Tensor, int]:
    """Draw word ids until ``n`` distinct ones are there; low ids, the frequent words, come more often.

    Returns:
        long ``[n]``, and the number of draws that it took.
    """
    drawn = torch.empty(0, dtype=torch.long)
    while True:
        more = (
            torch.rand(4 * n, dtype=torch.float64, generator=chance) * math.log(vocabulary_size + 1)
        ).exp().long() - 1
        drawn = torch.cat([drawn, more.clamp_(0, vocabulary_size - 1)])
        distinct, inverse = torch.unique(drawn, return_inverse=True)
        if len(distinct) >= n:
            break
    first = torch.full((len(distinct),), len(drawn)).scatter_reduce(0, inverse, torch.arange(len(drawn)), "amin")
    first_draws = first.sort().values[:n]
    return drawn[first_draws], int(first_draws[-1]) + 1


def log_expected_count(ids: Tensor, tries: int, vocabulary_size: int) -> Tensor:
    """Logarithm of how often each id is among the distinct ids of ``tries`` log-uniform draws."""
    rank = ids.double()
    probability = ((rank + 2) / (rank + 1)).log() / math.log(vocabulary_size + 1)
    return (-torch.expm1(tries * torch.log1p(-probability))).log().float()
