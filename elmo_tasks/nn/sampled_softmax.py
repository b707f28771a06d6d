"""Cross-entropy over a sample of the vocabulary (or over all of it), in blocks that stay in the cache.

All logits of a training step would take gigabytes on a GPU and exceed a CPU's cache, and autograd would pass over them
about ten times. Here each block of positions has its three products computed together: the logits, and the gradients of
hidden states and weights. No tensor of the size of all logits is kept.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_tasks.nn.linear import linear, product

_BLOCK_LOGITS = {"cpu": 1 << 20, "cuda": 1 << 28}
_FEWEST_ROWS = 128  # of a block: the gradient of all weights is read and written once a block


def sampled_softmax_loss(
    hidden: Tensor, target_scores: Tensor, weight: Tensor, bias: Tensor, target_columns: Tensor
) -> Tensor:
    """Mean negative log-likelihood of each position's target among the target and K candidates.

    Args:
        hidden: ``[N, P]``; its dtype is that of the products.
        target_scores: float ``[N]``, the logit of each position's target.
        weight: ``[K, P]``, the candidates' rows of the softmax.
        bias: ``[K]``, added to the candidates' logits.
        target_columns: long ``[N]``, index of the candidate that is the target itself, which is excluded, or -1.

    Returns:
        float ``[]``; gradients flow to the first four arguments.
    """
    with torch.autocast(hidden.device.type, enabled=False):
        loss: Tensor = _SampledSoftmax.apply(  # type: ignore[no-untyped-call]
            hidden, target_scores, weight, bias, target_columns
        )
    return loss


class _SampledSoftmax(torch.autograd.Function):
    """The forward pass computes the gradients of the mean; the backward pass multiplies them by a scalar."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, scores: Tensor, weight: Tensor, bias: Tensor, columns: Tensor) -> Tensor:
        n_positions = len(hidden)
        n_rows = max(_FEWEST_ROWS, _BLOCK_LOGITS.get(hidden.device.type, 1 << 20) // len(weight))
        d_hidden, d_bias = torch.empty_like(hidden), torch.zeros_like(bias)
        d_weight = weight.new_zeros(weight.shape[1], len(weight))  # transposed, as the products are
        d_scores, losses = torch.empty_like(scores), torch.empty_like(scores)
        weight, bias = weight.to(hidden.dtype), bias.to(hidden.dtype)
        for start in range(0, n_positions, n_rows):
            rows = slice(start, start + n_rows)
            h = hidden[rows]
            logits = linear(h, weight, bias)
            _exclude(logits, columns[rows])
            largest = torch.maximum(logits.amax(dim=1).to(scores.dtype), scores[rows])
            exponentials = logits.sub_(largest.to(logits.dtype).unsqueeze(1)).exp_()
            largest = largest.to(logits.dtype).to(scores.dtype)  # as subtracted
            target_exponential = (scores[rows] - largest).exp()
            total = exponentials.sum(dim=1).to(scores.dtype) + target_exponential  # sum(dtype=...) would copy all first
            losses[rows] = total.log() + largest - scores[rows]
            d_scores[rows] = target_exponential / total - 1
            share = total.reciprocal().unsqueeze(1)  # candidate k has the probability exponentials[:, k] * share
            d_hidden[rows] = product(exponentials, weight) * share
            d_weight += product((h * share).to(h.dtype).t(), exponentials)
            d_bias += (share.to(logits.dtype).t() @ exponentials).squeeze(0)
        ctx.save_for_backward(d_hidden, d_scores, d_weight.t(), d_bias)
        return losses.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor) -> tuple[Tensor | None, ...]:
        d_hidden, d_scores, d_weight, d_bias = ctx.saved_tensors
        scale = d_loss / len(d_hidden)
        return d_hidden * scale.to(d_hidden.dtype), d_scores * scale, d_weight * scale, d_bias * scale, None


def _exclude(logits: Tensor, columns: Tensor) -> None:
    """Set one column of each row to minus infinity, none where it is -1; without a GPU synchronisation."""
    flat = logits.view(-1)
    indices = torch.arange(0, len(flat), logits.shape[1], device=logits.device) + columns.clamp(min=0)
    flat[indices] = torch.where(columns < 0, flat[indices], -math.inf)
