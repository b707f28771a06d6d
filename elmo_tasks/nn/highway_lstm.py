"""LSTM layers with highway connections that read in turn from the left and from the right (He et al., 2017).

A layer's steps have a hand-written backward pass: the input's part of all gates is one product over all steps, a step
is one product with a weight that is laid out once (:mod:`elmo_tasks.nn.linear`) and a few passes over small
arrays, and nothing is computed for padding: texts are packed, longest first (:mod:`elmo_tasks.bilm.pack`; N is the
number of packed positions). The same code runs on a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_tasks.bilm.pack import Packing, steps_of
from elmo_tasks.nn.dropout import dropout_mask
from elmo_tasks.nn.linear import linear, product, product_with, weight_gradient


class AlternatingLSTM(nn.Module):
    """Layers over padded texts, the first and every second one from left to right; padding comes out as zeros.

    Args:
        input_dim: E.
        hidden: H cells of a layer.
        n_layers: how many.
        dropout: rate of the variational dropout on a layer's hidden state, one mask for all steps of a text.
    """

    def __init__(self, input_dim: int, hidden: int, n_layers: int, dropout: float) -> None:
        super().__init__()
        self.dim, self.dropout = hidden, dropout
        self.layers = nn.ModuleList(HighwayLSTM(hidden if k else input_dim, hidden) for k in range(n_layers))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[B, T, E]`` and bool ``[B, T]`` to ``[B, T, H]``."""
        lengths = mask.sum(dim=1)
        order = lengths.argsort(descending=True, stable=True)
        packing = Packing.of(lengths[order].tolist())
        rows, positions = order[packing.rows.to(x.device)], packing.positions.to(x.device)
        turned = _turned(packing).to(x.device)
        out = x[rows, positions[0]]  # [N, E], from left to right
        dropping = self.training and self.dropout > 0
        for k, layer in enumerate(self.layers):
            read = out[turned] if k else out  # the way the layer reads
            keep = dropout_mask(out, torch.Size((len(x), self.dim)), self.dropout) if dropping else None
            out = layer(read, packing.batch_sizes, keep)
        direction = (len(self.layers) - 1) % 2
        padded = out.new_zeros(*mask.shape, self.dim)
        return padded.index_put((rows, positions[direction]), out)


class HighwayLSTM(nn.Module):
    """One layer in one direction, over packed positions in its reading order.

    ``i, f, o, r`` are sigmoids and ``g`` a tanh of the input and the hidden state before; with the cell
    ``c = i g + f c'`` the layer gives ``r o tanh(c) + (1 - r) W x``. Weights are orthogonal by gate, the forget gate's
    bias begins at 1.

    Args:
        input_dim: E.
        hidden: H.
    """

    def __init__(self, input_dim: int, hidden: int) -> None:
        super().__init__()
        self.of_input = nn.Parameter(torch.empty(5 * hidden, input_dim))  # i, f, o, r, g
        self.of_hidden = nn.Parameter(torch.empty(5 * hidden, hidden))
        self.highway = nn.Parameter(torch.empty(hidden, input_dim))
        self.bias = nn.Parameter(torch.zeros(5 * hidden))
        for weight in (self.of_input, self.of_hidden, self.highway):
            for gate in torch.split(weight.data, hidden):
                nn.init.orthogonal_(gate)
        self.bias.data[hidden : 2 * hidden] = 1.0

    def forward(self, x: Tensor, batch_sizes: Sequence[int], keep: Tensor | None = None) -> Tensor:
        """Run over all steps from zero states.

        Args:
            x: ``[N, E]``.
            batch_sizes: live rows of each step, not increasing.
            keep: a mask ``[B, H]`` on the hidden state, or None.

        Returns:
            ``[N, H]``.
        """
        with torch.autocast(x.device.type, enabled=False):  # a state of low precision would drift
            weights = (self.of_input, self.of_hidden, self.highway, self.bias)
            out: Tensor = _Layer.apply(x.to(self.bias.dtype), *weights, keep, batch_sizes)  # type: ignore[no-untyped-call]
        return out


class _Layer(torch.autograd.Function):
    """A layer and its gradient. ``tanh(x)`` is written ``2 sigmoid(2 x) - 1``, several times faster on a CPU."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        of_input: Tensor,
        of_hidden: Tensor,
        of_highway: Tensor,
        bias: Tensor,
        keep: Tensor | None,
        batch_sizes: Sequence[int],
    ) -> Tensor:
        gates = linear(x, _doubled(of_input), _doubled(bias))
        highway = linear(x, of_highway)
        advance = product_with(_doubled(of_hidden).t())
        n_cells = len(of_highway)
        out, cells, tanh_cells = (x.new_empty(len(x), n_cells) for _ in range(3))
        hidden, cell = x.new_zeros(2, batch_sizes[0], n_cells)
        for start, stop in steps_of(batch_sizes):
            hidden, cell = hidden[: stop - start], cell[: stop - start]
            gate = gates[start:stop]
            gate.add_(advance(hidden)).sigmoid_()
            i, f, o, r, g = gate.chunk(5, dim=1)
            g.mul_(2).sub_(1)
            cell = torch.addcmul(f * cell, i, g, out=cells[start:stop])
            tanh = torch.mul(cell, 2, out=tanh_cells[start:stop]).sigmoid_().mul_(2).sub_(1)
            hidden = torch.lerp(highway[start:stop], o * tanh, r, out=out[start:stop])
            if keep is not None:
                hidden *= keep[: stop - start]
        ctx.save_for_backward(x, of_input, of_hidden, of_highway, gates, highway, out, cells, tanh_cells, keep)
        ctx.batch_sizes = batch_sizes
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        x, of_input, of_hidden, of_highway, gates, highway, out, cells, tanh_cells, keep = ctx.saved_tensors
        d_gates, d_highway = torch.empty_like(gates), torch.empty_like(highway)
        go_back, steps = product_with(of_hidden), list(steps_of(ctx.batch_sizes))
        d_hidden, d_cell = gates.new_zeros(2, ctx.batch_sizes[0], len(of_highway))
        for k in reversed(range(len(steps))):
            start, stop = steps[k]
            i, f, o, r, g = gates[start:stop].chunk(5, dim=1)
            d_i, d_f, d_o, d_r, d_g = d_gates[start:stop].chunk(5, dim=1)
            tanh = tanh_cells[start:stop]
            dh, dc = d_hidden[: stop - start], d_cell[: stop - start]  # rows beyond are still zero
            dh += d_out[start:stop]
            if keep is not None:
                dh *= keep[: stop - start]
            through = dh * r
            around = torch.sub(dh, through, out=d_highway[start:stop])
            torch.mul(around, torch.addcmul(-highway[start:stop], o, tanh), out=d_r).mul_(r)
            through *= o
            of_tanh = through * tanh
            torch.mul(of_tanh, 1 - o, out=d_o)
            dc.add_(through).addcmul_(of_tanh, tanh, value=-1)
            of_i = dc * i
            of_g = of_i * g
            torch.addcmul(of_i, of_g, g, value=-1, out=d_g)
            torch.mul(of_g, 1 - i, out=d_i)
            dc *= f
            if k == 0:
                d_f.zero_()  # it had no cell to keep
                break
            start_before = steps[k - 1][0]
            torch.mul(dc * cells[start_before : start_before + stop - start], 1 - f, out=d_f)
            dh.copy_(go_back(d_gates[start:stop]))
        d_x = product(d_gates, of_input) + product(d_highway, of_highway) if ctx.needs_input_grad[0] else None
        of_weights = [
            weight_gradient(d, read) if needed else None
            for d, read, needed in zip(
                (d_gates, d_gates, d_highway), (x, _before(out, steps), x), ctx.needs_input_grad[1:4], strict=True
            )
        ]
        return d_x, *of_weights, d_gates.sum(dim=0), None, None


def _doubled(weight: Tensor) -> Tensor:
    """A copy of which the part for g, the last of the five gates, is twice as large."""
    copy = weight.clone()
    copy[-(len(weight) // 5) :] *= 2
    return copy


def _before(out: Tensor, steps: Sequence[tuple[int, int]]) -> Tensor:
    """``[N, H]``: each position's hidden state of the step before, zero at the first step."""
    first = out.new_zeros(steps[0][1], out.shape[1])
    later = (out[start : start + stop_after - start_after] for (start, _), (start_after, stop_after) in pairwise(steps))
    return torch.cat([first, *later])


def _turned(packing: Packing) -> Tensor:
    """Long ``[N]``: where each packed position, read from the other side, stands; its own inverse."""
    n_rows, n_steps = packing.batch_sizes[0], len(packing.batch_sizes)
    place = torch.empty(n_rows, n_steps, dtype=torch.long)
    place[packing.rows, packing.positions[0]] = torch.arange(len(packing.rows))
    return place[packing.rows, packing.positions[1]]
