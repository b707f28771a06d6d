"""A larger biLM that computes what a smaller one does, to be trained further (Net2Net, Chen et al., 2016).

Cells and filters are copied until there are as many as the larger size has. Whatever read a unit reads all its copies,
with weights that add up to the old one. These shares are random: with equal shares, copies would have equal gradients
and stay copies.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import torch
from torch import Tensor

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.options import BiLMOptions


def can_grow(small: BiLMOptions, large: BiLMOptions) -> bool:
    """Whether the larger size has at least as many cells and filters as the smaller, and is otherwise the same.

    Where cells or filters are not projected, their number must be the same too.
    """
    if replace(large, filters=small.filters, dim=small.dim) != small:
        return False
    widths, counts = zip(*small.filters, strict=True)
    large_widths, large_counts = zip(*large.filters, strict=True)
    if widths != large_widths or any(n > m for n, m in zip(counts, large_counts, strict=True)):
        return False
    cells, filters = (small.dim, large.dim), (sum(counts), sum(large_counts))
    return cells[0] <= cells[1] and all(n == m or small.projection_dim not in (n, m) for n, m in (cells, filters))


def grown(bilm: BiLM, options: BiLMOptions) -> dict[str, Tensor]:
    """The weights of a larger biLM that computes the same layers as ``bilm``, up to rounding.

    Args:
        bilm: the smaller one.
        options: the larger sizes, for which :func:`can_grow` is true.

    Returns:
        the larger biLM's ``state_dict``.
    """
    rng = torch.Generator().manual_seed(0)
    groups = [_copies(n, m) for (_, n), (_, m) in zip(bilm.options.filters, options.filters, strict=True)]
    starts = accumulate((n for _, n in bilm.options.filters[:-1]), initial=0)
    filters = torch.cat([start + group for start, group in zip(starts, groups, strict=True)])
    cells = _copies(bilm.options.dim, options.dim)
    gates = torch.cat([gate * bilm.options.dim + cells for gate in range(4)])

    def grow(name: str, value: Tensor) -> Tensor:
        part, kind = name.split(".")[-2:]
        if part == "kernels":
            return value[:, groups[int(kind)]]
        if kind == "kernel_bias":
            return value[filters]
        if part in ("transform", "carry"):
            return value[filters] if kind == "bias" else _shared(value[filters], 1, filters, rng)
        if name == "encoder.projection.weight":
            return _shared(value, 1, filters, rng)
        if kind == "w_projection":
            return _shared(value, 1, cells, rng)
        return value[..., gates] if name.startswith("lstms.") else value

    return {name: grow(name, value) for name, value in bilm.state_dict().items()}


def _copies(n: int, m: int) -> Tensor:
    """For each of m units of the larger size, the one of n units that it is a copy of: long ``[m]``."""
    return torch.arange(m) % n


def _shared(weight: Tensor, axis: int, copies: Tensor, rng: torch.Generator) -> Tensor:
    """The weights with which all copies are read along an axis; those of one unit's copies sum to its weight."""
    wide = weight.index_select(axis, copies)
    drawn = 0.5 + torch.rand(wide.shape, generator=rng)
    total = torch.zeros_like(weight).index_add_(axis, copies, drawn)
    return wide * (drawn / total.index_select(axis, copies))
