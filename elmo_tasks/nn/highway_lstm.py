"""LSTM layers with highway connections and alternating directions (He et al., 2017).

A layer's steps have a hand-written backward pass: the input's part of all gates is one product over all steps, a step
is one product with a weight that is prepacked once (:mod:`elmo_tasks.nn.linear`) and a few passes over small
arrays, and nothing is computed for padding: texts are packed, longest first (:mod:`elmo_tasks.nn.packing`; N is the
number of packed positions). The same code runs on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_tasks.nn.dropout import dropout_mask, dropout_rate
from elmo_tasks.nn.linear import linear, product, product_and_sum_with, product_with, weight_gradient
from elmo_tasks.nn.packing import Packing, previous_states, step_ranges


class AlternatingLSTM(nn.Module):
    """Layers over padded texts, alternately left to right (the first) and right to left; zero on padding.

    Args:
        input_dim: E.
        hidden: H cells of a layer.
        n_layers: number of layers.
        dropout: rate of the variational dropout on a layer's hidden state, one mask for all steps of a text.

    Raises:
        UserError: for a dropout rate outside of [0, 1).
    """

    def __init__(self, input_dim: int, hidden: int, n_layers: int, dropout: float) -> None:
        super().__init__()
        self.dim, self.dropout = hidden, dropout_rate(dropout)
        self.layers = nn.ModuleList(HighwayLSTM(hidden if k else input_dim, hidden) for k in range(n_layers))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[B, T, E]`` and bool ``[B, T]`` to ``[B, T, H]``; B may be 0."""
        if not len(x):
            return x.new_zeros(*mask.shape, self.dim)
        lengths = mask.sum(dim=1)
        order = lengths.argsort(descending=True, stable=True)
        packing = Packing.from_lengths(lengths[order].tolist())
        rows, positions = order[packing.rows.to(x.device)], packing.positions.to(x.device)
        reversed_rows = _reversed(packing).to(x.device)
        out = x.flatten(0, 1).index_select(0, rows * x.shape[1] + positions[0])  # [N, E], from left to right
        dropping = self.training and self.dropout > 0
        for k, layer in enumerate(self.layers):
            read = out.index_select(0, reversed_rows) if k else out  # in the layer's reading order
            keep = dropout_mask(out, torch.Size((len(x), self.dim)), self.dropout) if dropping else None
            out = layer(read, packing.batch_sizes, keep)
        direction = (len(self.layers) - 1) % 2
        padded = out.new_zeros(*mask.shape, self.dim)
        return padded.index_put((rows, positions[direction]), out)


class HighwayLSTM(nn.Module):
    """One layer in one direction, over packed positions in its reading order.

    ``i, f, o, r`` are sigmoids and ``g`` a tanh of the input and the previous hidden state; with the cell
    ``c = i g + f c'`` the output is ``r o tanh(c) + (1 - r) W x``. Weights are initialised orthogonally by gate, the
    forget gate's bias is initialised to 1.

    Args:
        input_dim: E.
        hidden: H.
    """

    def __init__(self, input_dim: int, hidden: int) -> None:
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(5 * hidden, input_dim))  # i, f, o, r, g
        self.hidden_weight = nn.Parameter(torch.empty(5 * hidden, hidden))
        self.highway = nn.Parameter(torch.empty(hidden, input_dim))
        self.bias = nn.Parameter(torch.zeros(5 * hidden))
        for weight in (self.input_weight, self.hidden_weight, self.highway):
            for gate in torch.split(weight.data, hidden):
                nn.init.orthogonal_(gate)
        self.bias.data[hidden : 2 * hidden] = 1.0

    def forward(self, x: Tensor, batch_sizes: Sequence[int], keep: Tensor | None = None) -> Tensor:
        """Run over all steps from zero states.

        Args:
            x: ``[N, E]``.
            batch_sizes: number of active rows at each step, not increasing.
            keep: a mask ``[B, H]`` on the hidden state, or None.

        Returns:
            ``[N, H]``.
        """
        with torch.autocast(x.device.type, enabled=False):  # a state of low precision would drift
            weights = (self.input_weight, self.hidden_weight, self.highway, self.bias)
            out: Tensor = _Layer.apply(x.to(self.bias.dtype), *weights, keep, batch_sizes)  # type: ignore[no-untyped-call]
        return out


class _Layer(torch.autograd.Function):
    """A layer and its gradient, with few passes over a step's arrays.

    The tanh of g is ``2 sigmoid(2 g) - 1``, several times faster on a CPU, so that one sigmoid serves all gates: s
    stands for ``sigmoid(2 g)``. The cell is stored negated, t is ``sigmoid(-2 c)``: then ``i tanh(g)`` is
    ``2 i s - i`` and ``o tanh(c)`` is ``o - 2 o t``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,  # [N, E]
        input_weight: Tensor,  # [5 H, E], gates i, f, o, r, g
        hidden_weight: Tensor,  # [5 H, H]
        highway_weight: Tensor,  # [H, E]
        bias: Tensor,  # [5 H]
        keep: Tensor | None,  # [B, H], a mask on the hidden state
        batch_sizes: Sequence[int],  # active rows at each step, not increasing
    ) -> Tensor:  # [N, H]
        input_gates, highway = linear(x, _doubled(input_weight), _doubled(bias)), linear(x, highway_weight)
        advance = product_and_sum_with(_doubled(hidden_weight).t())
        n_cells = len(highway_weight)
        out, minus_cells, ts = (x.new_empty(len(x), n_cells) for _ in range(3))
        hidden, minus_cell = x.new_zeros(2, batch_sizes[0], n_cells)
        gates = []
        for start, stop in step_ranges(batch_sizes):
            hidden, minus_cell = hidden[: stop - start], minus_cell[: stop - start]
            gates.append(advance(hidden, input_gates[start:stop]).sigmoid_())
            i, f, o, r, s = gates[-1].chunk(5, dim=1)
            minus_new = torch.addcmul(i, i, s, value=-2)
            minus_cell = torch.addcmul(minus_new, f, minus_cell, out=minus_cells[start:stop])
            t = torch.mul(minus_cell, 2, out=ts[start:stop]).sigmoid_()
            hidden = torch.lerp(highway[start:stop], torch.addcmul(o, o, t, value=-2), r, out=out[start:stop])
            if keep is not None:
                hidden *= keep[: stop - start]
        ctx.save_for_backward(
            x, input_weight, hidden_weight, highway_weight, highway, out, minus_cells, ts, keep, *gates
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        x, input_weight, hidden_weight, highway_weight, highway, out, minus_cells, ts, keep, *gates = ctx.saved_tensors
        batch_sizes = [len(gate) for gate in gates]
        steps = list(step_ranges(batch_sizes))
        d_gates, d_highway = x.new_empty(len(x), len(input_weight)), torch.empty_like(highway)
        go_back = product_with(hidden_weight)
        d_hidden, d_minus_cell = x.new_zeros(2, len(gates[0]), len(highway_weight))
        for k in reversed(range(len(steps))):
            start, stop = steps[k]
            i, f, o, r, s = gates[k].chunk(5, dim=1)
            d_gate = d_gates[start:stop]
            d_i, d_f, d_o, d_r, d_s = d_gate.chunk(5, dim=1)  # of the sigmoids' outputs, until sigmoid_backward
            t, around = ts[start:stop], highway[start:stop]
            dh, dc = d_hidden[: stop - start], d_minus_cell[: stop - start]  # later rows are still zero
            dh += d_out[start:stop]
            if keep is not None:
                dh *= keep[: stop - start]
            through = dh * r
            torch.sub(dh, through, out=d_highway[start:stop])
            torch.mul(torch.addcmul(o, o, t, value=-2).sub_(around), dh, out=d_r)
            torch.addcmul(through, through, t, value=-2, out=d_o)
            dc.add_(torch.ops.aten.sigmoid_backward(through.mul_(o), t), alpha=-4)
            torch.addcmul(dc, dc, s, value=-2, out=d_i)
            torch.mul(dc, i, out=d_s).mul_(-4)
            if k:
                before = steps[k - 1][0]
                torch.mul(dc, minus_cells[before : before + stop - start], out=d_f)
            else:
                d_f.zero_()  # the first step has no cell before it
            torch.ops.aten.sigmoid_backward.grad_input(d_gate, gates[k], grad_input=d_gate)
            if k:
                dc *= f
                dh.copy_(go_back(d_gate))
        d_x = product(d_gates, input_weight) + product(d_highway, highway_weight) if ctx.needs_input_grad[0] else None
        d_weights = [
            weight_gradient(d, read) if needed else None
            for d, read, needed in zip(
                (d_gates, d_gates, d_highway),
                (x, previous_states(out, batch_sizes), x),
                ctx.needs_input_grad[1:4],
                strict=True,
            )
        ]
        return d_x, *d_weights, d_gates.sum(dim=0), None, None


def _doubled(weight: Tensor) -> Tensor:
    """A copy with the part for g, the last of the five gates, doubled."""
    copy = weight.clone()
    copy[-(len(weight) // 5) :] *= 2
    return copy


def _reversed(packing: Packing) -> Tensor:
    """Long ``[N]``: the index of each packed position in the other reading order; its own inverse."""
    n_rows, n_steps = packing.batch_sizes[0], len(packing.batch_sizes)
    index = torch.empty(n_rows, n_steps, dtype=torch.long)
    index[packing.rows, packing.positions[0]] = torch.arange(len(packing.rows))
    return index[packing.rows, packing.positions[1]]
