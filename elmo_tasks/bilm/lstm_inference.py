"""The biLM's LSTM on a CPU without gradients, one direction at a time.

This is faster than batched products of both directions: weights are prepacked once, and the input's part of the gates
is added within the product.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.nn.int8 import int8_product_and_sum_with, int8_product_with
from elmo_tasks.nn.linear import linear, product_and_sum_with, product_with
from elmo_tasks.nn.packing import step_ranges


def run_direction(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    w_projection: Tensor | None,
    batch_sizes: Sequence[int],
    state: tuple[Tensor, Tensor],
    clips: tuple[float, float],
    int8: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run over packed sequences; gates are i, j, f, o, where j is doubled (``tanh(j) = 2 sigmoid(2 j) - 1``).

    Args:
        x: ``[N, input_dim]``, in reading order; matrix products have its dtype, the state keeps its own.
        weight: ``[input_dim + P, 4H]``.
        bias: ``[4H]``.
        w_projection: ``[H, P]``; None where there is no projection, and P is H.
        batch_sizes: number of active rows at each step, not increasing.
        state: initial hidden state and cell of each row, ``[B, P]`` and ``[B, H]``.
        clips: bounds of the cell's and of the output's absolute value.
        int8: round what is multiplied to 8 bits; sums, gates and the state keep their dtype.

    Returns:
        outputs ``[N, P]``, and the final hidden state and cell of each row.
    """
    cell_clip, proj_clip = clips
    from_input, from_hidden = weight[: x.shape[1]], weight[x.shape[1] :]
    if int8:
        gates = int8_product_and_sum_with(from_input)(x, bias)
        advance = int8_product_and_sum_with(from_hidden)
        project = None if w_projection is None else int8_product_with(w_projection)
    else:
        gates = linear(x, from_input.t(), bias)
        advance = product_and_sum_with(from_hidden)
        project = None if w_projection is None else product_with(w_projection)
    hidden, minus_cell = state[0].clone(), -state[1]  # negated: saves two passes over the cell
    out = hidden.new_empty(len(x), hidden.shape[1])
    for start, stop in step_ranges(batch_sizes):
        h, c = hidden[: stop - start], minus_cell[: stop - start]
        i, j, f, o = advance(h.to(x.dtype), gates[start:stop]).to(c.dtype).sigmoid_().chunk(4, dim=1)
        torch.addcmul(torch.addcmul(i, i, j, value=-2), f, c, out=c).clamp_(-cell_clip, cell_clip)
        m = torch.addcmul(o, o, (c * 2).sigmoid_(), value=-2)  # o tanh(cell)
        if project:
            torch.clamp(project(m.to(x.dtype)).to(h.dtype), -proj_clip, proj_clip, out=h)
        else:
            h.copy_(m)
        out[start:stop] = h
    return out, hidden, -minus_cell
