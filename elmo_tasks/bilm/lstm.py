"""The biLM's LSTM with projection, cell clipping and projection clipping, both directions side by side.

Sequences are packed, longest first, time-major: step t holds the rows 0 .. ``batch_sizes[t]`` - 1, and N is the
number of positions of all steps. The backward direction reads each sequence from its end, so that both directions
have the same live rows at each step and share one batched product. Nothing is computed for padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.bilm.read import read
from elmo_tasks.nn.linear import linear, product, products_and_sums_with, products_with

State = tuple[Tensor, Tensor]
"""Projected output ``[2, B, P]`` and cell ``[2, B, H]`` of both directions."""


class ProjectedLSTM(nn.Module):
    """One layer, two directions (TensorFlow's ``LSTMCell``; gate order i, j, f, o).

    As in bilm-tf there is no projection where it would not make the output narrower: H is P then, and ``proj_clip`` is
    without effect.

    Args:
        input_dim: width of the input.
        dim: cells H of a direction.
        projection_dim: width P of a direction's output.
        cell_clip: bound of the cell's absolute value.
        proj_clip: bound of the output's absolute value.
    """

    def __init__(self, *, input_dim: int, dim: int, projection_dim: int, cell_clip: float, proj_clip: float) -> None:
        super().__init__()
        self.dim, self.projection_dim = dim, projection_dim
        self.cell_clip, self.proj_clip = float(cell_clip), float(proj_clip)
        self.input_dim = input_dim
        # rows of the input, then of the hidden state, as in the file
        self.weight = nn.Parameter(torch.empty(2, input_dim + projection_dim, 4 * dim))
        self.bias = nn.Parameter(torch.zeros(2, 4 * dim))  # as in the file: the forget gate's +1 is added on use
        self.w_projection = None if projection_dim == dim else nn.Parameter(torch.empty(2, dim, projection_dim))
        for weight in (self.weight, self.w_projection):  # glorot uniform, TensorFlow's default
            if weight is not None:
                bound = (6 / (weight.shape[1] + weight.shape[2])) ** 0.5
                nn.init.uniform_(weight, -bound, bound)

    def initial_state(self, n_rows: int) -> State:
        """Zeros for ``n_rows`` sequences."""
        like = self.weight.detach()
        return like.new_zeros(2, n_rows, self.projection_dim), like.new_zeros(2, n_rows, self.dim)

    def forward(self, x: Tensor, batch_sizes: Sequence[int], state: State) -> tuple[Tensor, State]:
        """Run over packed sequences.

        Args:
            x: ``[2, N, input_dim]``, each direction in its own reading order.
            batch_sizes: live rows of each step, not increasing.
            state: where each row begins; no gradient flows into it (windows are truncated there).

        Returns:
            outputs ``[2, N, P]`` and each row's state after its last step.
        """
        device = x.device.type
        if torch.is_autocast_enabled(device):
            x = x.to(torch.get_autocast_dtype(device))
        # one sigmoid serves all four gates, since tanh(j) = 2 sigmoid(2 j) - 1
        scale, shift = self.bias.new_ones(4, self.dim), self.bias.new_zeros(4, self.dim)
        scale[1], shift[2] = 2.0, 1.0
        bias = ((self.bias + shift.flatten()) * scale.flatten()).to(x.dtype)
        weight = (self.weight * scale.flatten()).to(x.dtype)
        w_projection = None if self.w_projection is None else self.w_projection.to(x.dtype)
        if not torch.is_grad_enabled() and device == "cpu":
            clips = (self.cell_clip, self.proj_clip)
            of_direction = (
                read(x[k], weight[k], bias[k], own_projection, batch_sizes, (state[0][k], state[1][k]), clips)
                for k, own_projection in enumerate((None, None) if w_projection is None else w_projection)
            )
            out, hidden, cell = map(torch.stack, zip(*of_direction, strict=True))
            return out, (hidden, cell)
        of_input = weight[:, : self.input_dim].transpose(1, 2)
        gates = torch.stack([linear(*each) for each in zip(x, of_input, bias, strict=True)])
        out, hidden, cell = _Recurrence.apply(  # type: ignore[no-untyped-call]
            gates,
            weight[:, self.input_dim :],
            w_projection,
            *state,
            list(batch_sizes),
            self.cell_clip,
            self.proj_clip,
        )
        return out, (hidden, cell)


class _Recurrence(torch.autograd.Function):
    """All steps of one layer with a hand-written backward pass.

    Autograd would record about fifteen small operations a step; here a step is two products and a few fused
    passes, and the weight gradients are one product over all steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,  # [2, N, 4H] input part of the pre-activations, bias included, j doubled
        w_hidden: Tensor,  # [2, P, 4H]
        w_projection: Tensor | None,  # [2, H, P]
        hidden: Tensor,  # [2, B, P]
        cell: Tensor,  # [2, B, H]
        batch_sizes: list[int],
        cell_clip: float,
        proj_clip: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        n_positions, dim = gates.shape[1], cell.shape[2]
        training = any(ctx.needs_input_grad)
        hidden, cell = hidden.to(gates.dtype, copy=True), cell.clone()
        out = gates.new_empty(2, n_positions, hidden.shape[2])
        if training:
            kept_gates = cell.new_empty(2, n_positions, 4 * dim)
            kept_cells = cell.new_empty(2, n_positions, dim)  # after clipping
            previous_cells = cell.new_empty(2, n_positions, dim)
            previous_hidden = torch.empty_like(out)
            kept_m = gates.new_empty(2, n_positions, dim)  # o * tanh(c), before the projection
        add_hidden = products_and_sums_with(w_hidden)
        project = None if w_projection is None else products_with(w_projection)
        start = 0
        for n in batch_sizes:
            now = slice(start, start + n)
            h, c = hidden[:, :n], cell[:, :n]
            act = kept_gates[:, now] if training else cell.new_empty(2, n, 4 * dim)
            for of_direction, total in zip(act, add_hidden(h, gates[:, now]), strict=True):
                torch.sigmoid(total.to(cell.dtype), out=of_direction)
            if training:
                previous_cells[:, now], previous_hidden[:, now] = c, h
            i, j, f, o = act.chunk(4, dim=2)
            c.mul_(f).add_((i * j).mul_(2).sub_(i)).clamp_(-cell_clip, cell_clip)
            m = ((c * 2).sigmoid_().mul_(2).sub_(1)).mul_(o).to(gates.dtype)
            h.copy_(project(m).clamp_(-proj_clip, proj_clip) if project else m)
            out[:, now] = h
            if training:
                kept_cells[:, now], kept_m[:, now] = c, m
            start += n
        if training:
            ctx.save_for_backward(
                w_hidden, w_projection, kept_gates, kept_cells, previous_cells, previous_hidden, kept_m, out
            )
            ctx.settings = batch_sizes, cell_clip, proj_clip
        hidden = hidden.to(cell.dtype)
        ctx.mark_non_differentiable(hidden, cell)
        return out, hidden, cell

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        w_hidden, w_projection, acts, cells, previous_cells, previous_hidden, kept_m, out = ctx.saved_tensors
        batch_sizes, cell_clip, proj_clip = ctx.settings
        dim, dtype = cells.shape[2], out.dtype
        to_hidden = products_with(w_hidden.transpose(1, 2))
        to_m = None if w_projection is None else products_with(w_projection.transpose(1, 2))
        d_gates = torch.empty_like(acts, dtype=dtype)
        clipped_out, clipped_cell = _clipped(out, proj_clip) if to_m else None, _clipped(cells, cell_clip)
        d_outputs = d_out.clone()
        d_hidden = out.new_zeros(2, batch_sizes[0], out.shape[2])
        d_cell = cells.new_zeros(2, batch_sizes[0], dim)
        stop = out.shape[1]
        for n in reversed(batch_sizes):
            now = slice(stop - n, stop)
            d_h, d_c, act = d_outputs[:, now], d_cell[:, :n], acts[:, now]
            i, j, f, o = act.chunk(4, dim=2)
            d_h.add_(d_hidden[:, :n])
            if clipped_out is not None:
                d_h.masked_fill_(clipped_out[:, now], 0)
            d_m = (to_m(d_h) if to_m else d_h).to(cells.dtype)
            tanh_c = (cells[:, now] * 2).sigmoid_().mul_(2).sub_(1)
            d_c.add_(torch.ops.aten.tanh_backward(d_m * o, tanh_c))
            if clipped_cell is not None:
                d_c.masked_fill_(clipped_cell[:, now], 0)
            d_act = torch.empty_like(act)
            d_i, d_j, d_f, d_o = d_act.chunk(4, dim=2)
            torch.mul(d_c, (j * 2).sub_(1), out=d_i)
            torch.mul(d_c, i, out=d_j).mul_(2)
            torch.mul(d_c, previous_cells[:, now], out=d_f)
            torch.mul(d_m, tanh_c, out=d_o)
            d_gate = torch.ops.aten.sigmoid_backward(d_act, act).to(dtype)
            d_gates[:, now] = d_gate
            d_c.mul_(f)
            d_hidden[:, :n] = to_hidden(d_gate)
            stop -= n
        d_w_hidden = torch.stack([product(h.t(), d) for h, d in zip(previous_hidden, d_gates, strict=True)])
        if to_m is None:
            return d_gates, d_w_hidden, None, None, None, None, None, None
        d_w_projection = torch.stack([product(m.t(), d) for m, d in zip(kept_m, d_outputs, strict=True)])
        return d_gates, d_w_hidden, d_w_projection, None, None, None, None, None


def _clipped(values: Tensor, bound: float) -> Tensor | None:
    """Where a clipped tensor lies on its bound and lets no gradient through; None if it does nowhere."""
    clipped = values.abs() >= bound
    return clipped if bool(clipped.any()) else None
