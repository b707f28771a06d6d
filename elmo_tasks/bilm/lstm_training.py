"""All steps of one layer of the biLM's LSTM, with a hand-written backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from elmo_tasks.nn.linear import affine_maps_with, products_with, weight_gradient
from elmo_tasks.nn.packing import step_ranges


class LSTMFunction(torch.autograd.Function):
    """A projected LSTM over packed sequences (``bilm/lstm.py`` says how they are packed).

    Autograd would record about fifteen small operations a step; here a step is two products and a few elementwise
    passes. The products' dtype is also that of what the backward pass keeps; the cells themselves are never rounded to
    it. Cells are kept negated, which saves a pass: -c' = f (-c) + i (1 - 2 j). On a GPU nothing waits for the host, so
    that the loop can be captured in a CUDA graph.

    The backward pass overwrites two of the kept tensors: the gates, the largest, with their gradients, and tanh(c) with
    the projection's input. So it can run once: PyTorch refuses a second time.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,  # [2, N, input_dim]
        weight: Tensor,  # [2, input_dim + P, 4H], gates i, j, f, o; j doubled, since tanh(j) = 2 sigmoid(2 j) - 1
        bias: Tensor,  # [2, 4H], j doubled, the forget gate's +1 added
        w_projection: Tensor | None,  # [2, H, P]
        hidden: Tensor,  # [2, B, P]
        cell: Tensor,  # [2, B, H]
        batch_sizes: Sequence[int],
        cell_clip: float,
        proj_clip: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        n_positions, input_dim, dim = x.shape[1], x.shape[2], cell.shape[2]
        hidden, minus_cell = hidden.to(x.dtype, copy=True), -cell
        first_cell = minus_cell.to(x.dtype, copy=True)
        inputs = x.new_empty(2, n_positions, weight.shape[1])  # the input beside the output of the step before
        inputs[:, :, :input_dim] = x
        out = x.new_empty(2, n_positions, hidden.shape[2])
        gates = x.new_empty(2, n_positions, 4 * dim)
        cells, tanh_cells = (x.new_empty(2, n_positions, dim) for _ in range(2))
        to_gates = affine_maps_with(weight, bias)
        project = None if w_projection is None else products_with(-w_projection)
        for start, stop in step_ranges(batch_sizes):
            now, h, c = slice(start, stop), hidden[:, : stop - start], minus_cell[:, : stop - start]
            inputs[:, now, input_dim:] = h
            _sigmoid(to_gates(inputs[:, now]), out=gates[:, now])
            i, j, f, o = gates[:, now].chunk(4, dim=2)
            c.mul_(f).add_(torch.addcmul(i, i, j, value=-2)).clamp_(-cell_clip, cell_clip)
            cells[:, now], tanh_cells[:, now] = c, c.tanh()
            m = tanh_cells[:, now] * o
            h.copy_(-m if project is None else project(m).clamp_(-proj_clip, proj_clip))
            out[:, now] = h
        ctx.save_for_backward(weight, w_projection, inputs, out, gates, cells, tanh_cells, first_cell)
        ctx.settings = batch_sizes, cell_clip, proj_clip
        hidden, cell = hidden.to(cell.dtype), -minus_cell
        ctx.mark_non_differentiable(hidden, cell)
        return out, hidden, cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        weight, w_projection, inputs, out, gates, cells, tanh_cells, first_cell = ctx.saved_tensors
        batch_sizes, cell_clip, proj_clip = ctx.settings
        input_dim = weight.shape[1] - out.shape[2]
        to_inputs = products_with(weight.transpose(1, 2))
        to_m = None if w_projection is None else products_with(-w_projection.transpose(1, 2))
        d_inputs, d_outputs = torch.empty_like(inputs), d_out.clone()
        d_gate_values = torch.empty_like(gates[:, : batch_sizes[0]])  # of one step
        d_hidden, d_cell = out[:, :0], torch.zeros_like(first_cell)  # what the step after sends back
        steps = list(step_ranges(batch_sizes))
        for number, (start, stop) in reversed(list(enumerate(steps))):
            n, now = stop - start, slice(start, stop)
            d_h, d_c, d_gate, gate = d_outputs[:, now], d_cell[:, :n], d_gate_values[:, :n], gates[:, now]
            i, j, f, o = gate.chunk(4, dim=2)
            previous_c = cells[:, (first := steps[number - 1][0]) : first + n] if number else first_cell[:, :n]
            d_h[:, : d_hidden.shape[1]].add_(d_hidden)
            if to_m is not None:
                _stop_at_clip(d_h, out[:, now], proj_clip)
            d_m = -d_h if to_m is None else to_m(d_h)
            tanh_c = tanh_cells[:, now]
            d_c.add_(torch.ops.aten.tanh_backward(d_m * o, tanh_c))
            _stop_at_clip(d_c, cells[:, now], cell_clip)
            d_i, d_j, d_f, d_o = d_gate.chunk(4, dim=2)
            torch.addcmul(d_c, d_c, j, value=-2, out=d_i)
            torch.mul(d_c, i, out=d_j).mul_(-2)
            torch.mul(d_c, previous_c, out=d_f)
            torch.mul(d_m, tanh_c, out=d_o)
            d_c.mul_(f)
            tanh_c.mul_(o)
            torch.ops.aten.sigmoid_backward.grad_input(d_gate, gate, grad_input=gate)
            d_inputs[:, now] = to_inputs(gate)
            d_hidden = d_inputs[:, now, input_dim:]
        d_gates, before_projection = gates, tanh_cells  # overwritten
        d_weight = _products_over_all_steps(inputs, d_gates)
        d_bias = _products_over_all_steps(torch.ones_like(d_gates[:, :, :1]), d_gates).squeeze(1)
        d_projection = -_products_over_all_steps(before_projection, d_outputs) if to_m else None
        return d_inputs[:, :, :input_dim], d_weight, d_bias, d_projection, None, None, None, None, None


def _sigmoid(totals: Tensor | Sequence[Tensor], out: Tensor) -> None:
    if isinstance(totals, Tensor):
        torch.sigmoid(totals, out=out)
    else:
        for total, own_out in zip(totals, out, strict=True):
            torch.sigmoid(total, out=own_out)


def _stop_at_clip(gradient: Tensor, values: Tensor, bound: float) -> None:
    """Let no gradient through where a clipped tensor lies on its bound."""
    torch.ops.aten.hardtanh_backward.grad_input(gradient, values, -bound, bound, grad_input=gradient)


def _products_over_all_steps(left: Tensor, right: Tensor) -> Tensor:
    """``[2, N, P]`` and ``[2, N, Q]`` to ``[2, P, Q]``."""
    return torch.stack([weight_gradient(a, b) for a, b in zip(left, right, strict=True)])
