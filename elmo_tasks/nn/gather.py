"""Rows of a table: lookup with a gradient that is fast on a CPU and can be captured in a CUDA graph; distinct rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def gather_rows(table: Tensor, rows: Tensor) -> Tensor:
    """``table[rows]`` for a table ``[R, P]`` and rows of any shape: ``[..., P]``."""
    out: Tensor = _Gather.apply(table, rows)  # type: ignore[no-untyped-call]
    return out


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.n_rows = len(table)
        return table.index_select(0, rows.flatten()).view(*rows.shape, table.shape[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        return sum_by_row(d_out, rows, ctx.n_rows), None


def sum_by_row(values: Tensor, rows: Tensor, n_rows: int) -> Tensor:
    """Sum ``values`` ``[..., P]`` by their row number in ``rows`` ``[...]``: ``[n_rows, P]``."""
    if values.device.type == "cpu":  # index_add is slow there: it adds row by row
        sums: Tensor = torch.ops.aten.embedding_dense_backward(values, rows, n_rows, -1, False)
        return sums
    zeros = values.new_zeros(n_rows, values.shape[-1])
    return zeros.index_add_(0, rows.flatten(), values.flatten(0, -2))


def distinct_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of integers ``[n, C]``, in any order, and the number of each row among them, ``[n]``.

    ``torch.unique(dim=0)`` sorts whole rows, about ten times slower on a CPU. Here one number stands for a row:
    its sum with random weights, modulo 2 ** 64. Should two different rows have the same number, whole rows are sorted.
    """
    weights = torch.randint(2**62, (rows.shape[1],), generator=torch.Generator().manual_seed(0)).to(rows.device)
    numbers, where = torch.unique((rows * weights).sum(dim=1), return_inverse=True)
    one_of_each = where.new_empty(len(numbers)).scatter_(0, where, torch.arange(len(rows), device=rows.device))
    distinct = rows[one_of_each]
    if not torch.equal(distinct[where], rows):
        distinct, where = torch.unique(rows, dim=0, return_inverse=True)
    return distinct, where
