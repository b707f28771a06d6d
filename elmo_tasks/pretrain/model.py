"""The biLM's training head: next word in both directions, one softmax for both (Peters et al., section 3.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.bilm.lstm import State
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.nn.gather import gather_rows
from elmo_tasks.nn.linear import linear
from elmo_tasks.nn.sampled_softmax import sampled_softmax_loss
from elmo_tasks.values import Probability, Rate, Size

_LOGITS = 20_000_000  # logits held at once by the full softmax


class LanguageModel(nn.Module):
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
        self.bilm, self.n_samples, self.dropout, self.forget = bilm, n_samples, dropout, forget
        width = bilm.options.projection_dim
        self.softmax_weight = nn.Parameter(torch.randn(vocabulary_size, width) / width**0.5)
        self.softmax_bias = nn.Parameter(torch.zeros(vocabulary_size))

    def read(self, x: Tensor, states: Sequence[State]) -> tuple[Tensor, list[State]]:
        """Run the LSTMs over token vectors; in training with dropout and random resets of rows.

        Args:
            x: ``[2, S, B, P]``, each direction in its reading order.
            states: initial state of each row, by LSTM layer.

        Returns:
            the top layer ``[2, S, B, P]`` and the final states, by LSTM layer, through which no gradient flows.
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
        return hidden.view(2, n_steps, n_rows, -1), finals

    def sampled_loss(self, hidden: Tensor, targets: Tensor, samples: Tensor, tries: int | Tensor) -> Tensor:
        """The training loss, without a GPU synchronisation.

        Args:
            hidden: ``[2, S, B, P]``.
            targets: long ``[2, S, B]``.
            samples: long ``[K]``, distinct words.
            tries: number of draws that gave them, an int or a float64 scalar. As candidates are distinct, logits
                are corrected by the log of the expected count in that many draws, not by the log probability.

        Returns:
            the mean over the positions of both directions, times the window's length, float ``[]``.
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

    def losses(self, hidden: Tensor, targets: Tensor, valid: Tensor) -> Tensor:
        """Negative log-likelihood of each valid position with the full softmax.

        Args:
            hidden: ``[2, S, B, P]``.
            targets: long ``[2, S, B]``.
            valid: bool ``[S, B]``.

        Returns:
            float ``[2, n]``, by direction.
        """
        targets = targets[:, valid]  # [2, n]
        rows, words = hidden[:, valid].float().flatten(0, 1), targets.flatten()
        losses = rows.new_empty(len(words))  # made first: else they would split up the memory of the logits
        n_rows = max(1, _LOGITS // len(self.softmax_bias))
        for start in range(0, len(words), n_rows):
            part = slice(start, start + n_rows)
            logits = linear(rows[part], self.softmax_weight, self.softmax_bias)
            losses[part] = F.cross_entropy(logits, words[part], reduction="none")
        return losses.view_as(targets)


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
