"""The character CNN's filters and their maxima over a word, forward and backward, as a few large operations.

All filter widths are one matrix product: a window of the widest filter (7 characters x 16 dimensions) is multiplied
with all filters at once, narrower ones are padded with zeros. Most filters are wide, so little work is wasted, and one
large product runs several times faster than seven convolutions.

During training the number of words differs from batch to batch. On a CPU, large tensors are therefore padded to one of
a few row counts, so that the memory that one step frees fits the next step's tensors. Otherwise the process grows step
by step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from elmo_tasks.nn.gather import sum_by_row
from elmo_tasks.nn.linear import product, weight_gradient

_SMALLEST = -1e-30  # two different numbers of 16 or 32 bits differ by more than this


def character_maxima(
    char_ids: Tensor, characters: Tensor, kernels: Tensor, filters: Sequence[tuple[int, int]]
) -> Tensor:
    """The maximum of each filter over a word's windows.

    Args:
        char_ids: long ``[W, C]``.
        characters: ``[262, E]``; its dtype is that of the products.
        kernels: ``[V E, F]`` for V characters, the width of the widest filter; the dtype of ``characters``.
        filters: (width, count) of each group of the F filters.

    Returns:
        ``[W, F]``; where several windows have the maximum, its gradient is shared by them.
    """
    n_rows = char_ids.numel()
    if pads_to_fixed_sizes(characters):
        n_rows = 1 << (n_rows - 1).bit_length()  # the next power of two
    out: Tensor = _CharacterMaxima.apply(char_ids, characters, kernels, filters, n_rows)  # type: ignore[no-untyped-call]
    return out


def pads_to_fixed_sizes(characters: Tensor) -> bool:
    """Whether this is training on a CPU; a GPU's memory is managed by PyTorch."""
    return characters.requires_grad and torch.is_grad_enabled() and characters.device.type == "cpu"


class _CharacterMaxima(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        char_ids: Tensor,
        characters: Tensor,
        kernels: Tensor,
        filters: Sequence[tuple[int, int]],
        n_rows: int,  # of the products: the windows of all words, or more
    ) -> Tensor:
        (n_words, n_positions), dim = char_ids.shape, characters.shape[1]
        width = len(kernels) // dim
        # the windows that begin among the last characters hang over the end; narrow filters use the first part of them
        padded = F.pad(char_ids, (0, width - 1))
        embedded = F.embedding(padded, characters)  # [W, C + V - 1, E]
        overlapping = embedded.as_strided((n_words, n_positions, width * dim), (embedded.stride(0), dim, 1))
        windows = embedded.new_zeros(n_rows, width * dim)
        _in_use(windows, overlapping.shape).copy_(overlapping)
        padded_scores = product(windows, kernels)
        scores = _in_use(padded_scores, (n_words, n_positions, kernels.shape[1]))
        first = 0
        for own_width, count in filters:
            scores[:, n_positions - own_width + 1 :, first : first + count] = -math.inf
            first += count
        maxima = scores.amax(dim=1)
        ctx.save_for_backward(padded, windows, kernels, padded_scores, maxima)
        ctx.shape, ctx.n_characters = scores.shape, len(characters)
        return maxima

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_maxima: Tensor) -> tuple[Tensor | None, ...]:
        padded, windows, kernels, padded_scores, maxima = ctx.saved_tensors
        n_words, n_positions, _ = ctx.shape
        d_scores = torch.zeros_like(padded_scores)
        hits = _in_use(d_scores, ctx.shape)
        _find_equal(_in_use(padded_scores, ctx.shape), maxima.unsqueeze(1), out=hits)
        share = d_maxima / hits.sum(dim=1)
        hits.mul_(share.unsqueeze(1))
        d_kernels = weight_gradient(windows, d_scores)
        d_windows = _in_use(product(d_scores, kernels.t()), (n_words, n_positions, len(kernels))).float()
        dim = len(kernels) // (padded.shape[1] - n_positions + 1)
        d_embedded = d_windows.new_zeros(n_words, padded.shape[1], dim)
        for k, part in enumerate(torch.split(d_windows, dim, dim=2)):
            d_embedded[:, k : k + n_positions].add_(part)
        d_characters = sum_by_row(d_embedded, padded, ctx.n_characters)
        return None, d_characters.to(kernels.dtype), d_kernels, None, None


def _in_use(padded: Tensor, shape: Sequence[int]) -> Tensor:
    """A view ``[words, positions, Q]`` of the first rows of ``[n, Q]``; the others are padding."""
    return padded[: shape[0] * shape[1]].view(*shape)


def _find_equal(scores: Tensor, maxima: Tensor, out: Tensor) -> None:
    """Write 1 where a window has the maximum, else 0."""
    if scores.device.type != "cpu" or scores.dtype is torch.float16:
        torch.eq(scores, maxima, out=out)
        return
    torch.sub(scores, maxima, out=out)  # a comparison takes many times as long there
    torch.ops.aten.threshold_backward.grad_input(out.new_ones(1).expand_as(out), out, _SMALLEST, grad_input=out)
