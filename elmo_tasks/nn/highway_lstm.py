"""LSTM layers with highway connections that read in turn from the left and from the right (He et al., 2017).

A layer's steps have a hand-written backward pass: the input's part of all gates is one product over all steps, a step
is one product with a weight that is laid out once (:mod:`elmo_tasks.nn.linear`) and a few passes over small
arrays, and nothing is computed for padding: texts are packed, longest first (:mod:`elmo_tasks.bilm.pack`; N is the
number of packed positions). The same code runs on a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.bilm.pack import Packing
from elmo_tasks.nn.linear import linear, product, product_with


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
        for k, layer in enumerate(self.layers):
            read = out[turned] if k else out  # the way the layer reads
            keep = self._keep(len(x), out)
            out = layer(read, packing.batch_sizes, keep)
        direction = (len(self.layers) - 1) % 2
        padded = out.new_zeros(*mask.shape, self.dim)
        return padded.index_put((rows, positions[direction]), out)

    def _keep(self, n_texts: int, like: Tensor) -> Tensor | None:
        """A dropout mask ``[B, H]``, already scaled; None without dropout."""
        if not self.training or self.dropout == 0:
            return None
        return like.new_empty(n_texts, self.dim).bernoulli_(1 - self.dropout) / (1 - self.dropout)


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
        self.hidden = hidden
        self.of_input = nn.Parameter(torch.empty(6 * hidden, input_dim))  # i, f, o, r, g, and the highway
        self.of_hidden = nn.Parameter(torch.empty(5 * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(5 * hidden))
        for weight in (self.of_input, self.of_hidden):
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
            x = linear(x.to(self.bias.dtype), self.of_input, F.pad(self.bias, (0, self.hidden)))
            out: Tensor = _Steps.apply(x, self.of_hidden.t(), keep, batch_sizes)  # type: ignore[no-untyped-call]
        return out


class _Steps(torch.autograd.Function):
    """All steps of a layer. ``tanh(x)`` is written ``2 sigmoid(2 x) - 1``, which is several times faster on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, keep: Tensor | None, batch_sizes: Sequence[int]) -> Tensor:
        n_cells = weight.shape[0]
        doubled = weight.clone()
        doubled[:, 4 * n_cells :] *= 2  # g is the last of the five gates
        gates, highway = x[:, : 5 * n_cells].clone(), x[:, 5 * n_cells :]
        gates[:, 4 * n_cells :] *= 2
        advance = product_with(doubled)
        out, before, cells, cells_before, tanh_cells = (x.new_empty(len(x), n_cells) for _ in range(5))
        hidden, cell = x.new_zeros(2, batch_sizes[0], n_cells)
        for start, stop in _steps(batch_sizes):
            hidden, cell = hidden[: stop - start], cell[: stop - start]
            before[start:stop], cells_before[start:stop] = hidden, cell
            gate = gates[start:stop]
            gate.add_(advance(hidden)).sigmoid_()
            i, f, o, r, g = gate.chunk(5, dim=1)
            g.mul_(2).sub_(1)
            cell = torch.addcmul(f * cell, i, g, out=cells[start:stop])
            tanh = torch.mul(cell, 2, out=tanh_cells[start:stop]).sigmoid_().mul_(2).sub_(1)
            hidden = torch.lerp(highway[start:stop], o * tanh, r)
            if keep is not None:
                hidden = hidden * keep[: stop - start]
            out[start:stop] = hidden
        ctx.save_for_backward(gates, highway, weight, before, cells_before, tanh_cells, keep)
        ctx.batch_sizes = batch_sizes
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, None, None]:
        gates, highway, weight, before, cells_before, tanh_cells, keep = ctx.saved_tensors
        n_cells, batch_sizes = weight.shape[0], ctx.batch_sizes
        go_back = product_with(weight.t())
        d_x = gates.new_empty(len(gates), 6 * n_cells)
        d_hidden, d_cell = gates.new_zeros(2, batch_sizes[0], n_cells)
        for start, stop in reversed(list(_steps(batch_sizes))):
            i, f, o, r, g = gates[start:stop].chunk(5, dim=1)
            d_i, d_f, d_o, d_r, d_g, d_highway = d_x[start:stop].chunk(6, dim=1)
            tanh = tanh_cells[start:stop]
            dh, dc = d_hidden[: stop - start], d_cell[: stop - start]  # rows beyond are still zero
            dh += d_out[start:stop]
            if keep is not None:
                dh *= keep[: stop - start]
            through = dh * r
            torch.sub(dh, through, out=d_highway)
            torch.mul(d_highway, torch.addcmul(-highway[start:stop], o, tanh), out=d_r).mul_(r)
            through *= o
            torch.mul(through * tanh, 1 - o, out=d_o)
            dc.add_(through).addcmul_(through * tanh, tanh, value=-1)
            of_i = dc * i
            torch.addcmul(of_i, of_i * g, g, value=-1, out=d_g)
            torch.mul(of_i * g, 1 - i, out=d_i)
            dc *= f
            torch.mul(dc * cells_before[start:stop], 1 - f, out=d_f)
            dh.copy_(go_back(d_x[start:stop, : 5 * n_cells]))
        return d_x, product(before.t(), d_x[:, : 5 * n_cells]), None, None


def _steps(batch_sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First position of each step, and the position behind its last."""
    start = 0
    for live in batch_sizes:
        yield start, start + live
        start += live


def _turned(packing: Packing) -> Tensor:
    """Long ``[N]``: where each packed position, read from the other side, stands; its own inverse."""
    n_rows, n_steps = packing.batch_sizes[0], len(packing.batch_sizes)
    place = torch.empty(n_rows, n_steps, dtype=torch.long)
    place[packing.rows, packing.positions[0]] = torch.arange(len(packing.rows))
    return place[packing.rows, packing.positions[1]]
