"""Linear-chain conditional random field: negative log-likelihood and constrained Viterbi decoding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_tasks.nn.viterbi import backtrace


class CRF(nn.Module):
    """Tag sequences scored by emissions, transitions, and start and end scores (Lafferty et al., 2001).

    The likelihood runs over all tag sequences; constraints hold in decoding only, as in AllenNLP.

    Args:
        allowed: bool ``[K, K]``, from tag (row) to tag (column); ``may_start``, ``may_end``: bool ``[K]``.
    """

    allowed: Tensor
    may_start: Tensor
    may_end: Tensor

    def __init__(self, allowed: Tensor, may_start: Tensor, may_end: Tensor) -> None:
        super().__init__()
        n_tags = len(allowed)
        self.transitions = nn.Parameter(torch.empty(n_tags, n_tags))
        self.start = nn.Parameter(torch.empty(n_tags))
        self.end = nn.Parameter(torch.empty(n_tags))
        nn.init.xavier_normal_(self.transitions)
        nn.init.normal_(self.start)
        nn.init.normal_(self.end)
        for name, value in (("allowed", allowed), ("may_start", may_start), ("may_end", may_end)):
            self.register_buffer(name, value, persistent=False)

    def loss(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Negative log-likelihood of each text.

        Args:
            emissions: float ``[B, T, K]``.
            tags: long ``[B, T]``.
            mask: bool ``[B, T]``, True from the first token to the last.

        Returns:
            float ``[B]``.
        """
        with torch.autocast(emissions.device.type, enabled=False):  # a difference of two large sums
            emissions = emissions.to(self.transitions.dtype)
            return self._log_partition(emissions, mask) - self._score(emissions, tags, mask)

    def _score(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Score of the given tags, ``[B]``."""
        token_scores = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        step_scores = self.transitions[tags[:, :-1], tags[:, 1:]]
        last = tags.gather(1, mask.sum(dim=1, keepdim=True) - 1).squeeze(1)
        return (
            (token_scores * mask).sum(dim=1)
            + (step_scores * mask[:, 1:]).sum(dim=1)
            + self.start[tags[:, 0]]
            + self.end[last]
        )

    def _log_partition(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Logarithm of the sum of the exponentiated scores of all tag sequences, ``[B]`` (forward algorithm).

        A step is a product with the exponentiated transitions, which is stable because the largest entry is
        subtracted first, and needs no ``[B, K, K]`` tensor.
        """
        largest_step = self.transitions.max().detach()
        steps = (self.transitions - largest_step).exp()
        alpha = self.start + emissions[:, 0]  # [B, K]
        for t in range(1, emissions.shape[1]):
            largest = alpha.max(dim=1, keepdim=True).values.detach()
            summed = (alpha - largest).exp() @ steps
            moved = summed.clamp_min(torch.finfo(summed.dtype).tiny).log() + largest + largest_step + emissions[:, t]
            alpha = torch.where(mask[:, t : t + 1], moved, alpha)
        return torch.logsumexp(alpha + self.end, dim=1)

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best allowed tag sequence of each text (Viterbi).

        Args:
            emissions: float ``[B, T, K]``.
            mask: bool ``[B, T]``, True from the first token to the last.

        Returns:
            the tag numbers of each text.
        """
        forbidden = emissions.new_tensor(-torch.inf)
        steps = self.transitions.where(self.allowed, forbidden)
        score = self.start.where(self.may_start, forbidden) + emissions[:, 0]
        pointers = []  # on padding a tag points to itself
        for t in range(1, emissions.shape[1]):
            best, pointer = (score.unsqueeze(2) + steps).max(dim=1)  # over the previous tag: [B, K]
            valid = mask[:, t : t + 1]
            score = torch.where(valid, best + emissions[:, t], score)
            pointers.append(torch.where(valid, pointer, torch.arange(len(steps), device=pointer.device)))
        return backtrace((score + self.end.where(self.may_end, forbidden)).argmax(dim=1), pointers, mask)
