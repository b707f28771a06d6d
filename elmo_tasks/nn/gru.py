"""A bidirectional GRU layer whose steps on a CPU have a hand-written backward pass.

On a CPU PyTorch has a fused LSTM but no fused GRU: it runs one direction after the other and records about fifteen
small operations a step. Here both directions run together. A step is one product per direction with a weight that is
prepacked once (:func:`elmo_tasks.nn.linear.products_with`). Nothing is computed for padding: rows are packed, longest
first (see :mod:`elmo_tasks.nn.packing`; N is the number of packed positions). On a GPU, PyTorch's layer is used.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_tasks.nn.linear import linear, products_with
from elmo_tasks.nn.packing import Packing, previous_states

_MINUS_ONE, _HALF = torch.tensor(-1.0), torch.tensor(0.5)
_RECURRENT_SD = 0.05  # of the paper's SQuAD model


class BiGRU(nn.Module):
    """One bidirectional GRU layer over padded texts; padding has no influence and comes out as zeros.

    Args:
        input_dim: E.
        hidden: cells of a direction; H = 2 x hidden is ``dim``.
    """

    def __init__(self, input_dim: int, hidden: int) -> None:
        super().__init__()
        self.hidden, self.dim = hidden, 2 * hidden
        self.gru = nn.GRU(input_dim, hidden, bidirectional=True, batch_first=True)
        for name, parameter in self.gru.named_parameters():
            if name.startswith("weight_hh"):
                nn.init.trunc_normal_(parameter, std=_RECURRENT_SD)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[B, T, E]`` and bool ``[B, T]`` to ``[B, T, H]``."""
        lengths = mask.sum(dim=1).cpu()
        if x.device.type == "cpu":
            return self._on_cpu(x, lengths)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=x.shape[1])
        return out

    def _on_cpu(self, x: Tensor, lengths: Tensor) -> Tensor:
        n_texts, n_tokens, _ = x.shape
        order = lengths.argsort(descending=True, stable=True)
        packing = Packing.from_lengths(lengths[order].tolist())
        indices = order[packing.rows] * n_tokens + packing.positions  # [2, N]
        # the hidden state's biases of r and z are added to the input's; that of n is multiplied by the reset gate
        bias_rz, bias_n = torch.split(self._both("bias_hh"), [self.dim, self.hidden], dim=1)
        bias = self._both("bias_ih") + F.pad(bias_rz, (0, self.hidden))
        double_n = torch.ones_like(bias[0])  # see _Steps
        double_n[self.dim :] = 2
        weight = self._both("weight_hh").transpose(1, 2) * double_n
        input_weight, input_bias = self._both("weight_ih") * double_n.unsqueeze(1), bias * double_n
        with torch.autocast("cpu", enabled=False):  # a state of low precision would drift
            gates = linear(x.to(bias.dtype), input_weight.flatten(0, 1), input_bias.flatten()).flatten(0, 1)
            out: Tensor = _Steps.apply(gates, weight, 2 * bias_n.unsqueeze(1), indices, packing.batch_sizes)  # type: ignore[no-untyped-call]
        return out.view(n_texts, n_tokens, self.dim)

    def _both(self, name: str) -> Tensor:
        """A parameter of both directions, ``[2, ...]``."""
        return torch.stack([getattr(self.gru, f"{name}_l0"), getattr(self.gru, f"{name}_l0_reverse")])


class _Steps(torch.autograd.Function):
    """All steps, from zero states: gates ``r, z, n`` as in :class:`torch.nn.GRU`.

    What is not recurrent is computed over all steps at once, so that a step is a product and a few passes over small
    arrays. ``tanh(x)`` is computed as ``2 sigmoid(2 x) - 1``, which is several times faster; the gate n comes doubled.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,  # [B T, 2 * 3 h] the input's part of the gates
        weight: Tensor,  # [2, h, 3 h] from the hidden state to the gates
        bias_n: Tensor,  # [2, 1, h]
        indices: Tensor,  # [2, N] the row of x of each packed position, by direction
        batch_sizes: list[int],  # active rows at each step, not increasing
    ) -> Tensor:  # [B T, H], zero on padding
        n_cells, sizes = weight.shape[1], [2 * weight.shape[1], weight.shape[1]]
        gates = torch.stack([x[indices[0], : 3 * n_cells], x[indices[1], 3 * n_cells :]])  # [2, N, 3 h]
        out, hidden_n = (gates.new_empty(2, gates.shape[1], n_cells) for _ in range(2))
        advance = products_with(weight)
        h = gates.new_zeros(2, batch_sizes[0], n_cells)
        arrays = (*torch.split(gates, sizes, dim=2), hidden_n, out)
        for r_and_z, n, u, h_new in zip(*(torch.split(array, batch_sizes, dim=1) for array in arrays), strict=True):
            h = h[:, : n.shape[1]]
            to_r_and_z, to_n = torch.split(advance(h), sizes, dim=2)
            r, z = r_and_z.add_(to_r_and_z).sigmoid_().chunk(2, dim=2)
            n.addcmul_(r, torch.add(to_n, bias_n, out=u)).sigmoid_()
            torch.add(_MINUS_ONE, n, alpha=2, out=n)
            h = torch.lerp(n, h, z, out=h_new)
        ctx.save_for_backward(gates, weight, hidden_n, out, indices)
        ctx.batch_sizes = batch_sizes
        return _unpacked(out, indices, len(x))

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        gates, weight, hidden_n, out, indices = ctx.saved_tensors
        n_cells, batch_sizes = weight.shape[1], ctx.batch_sizes
        r, z, n = gates.chunk(3, dim=2)
        before = previous_states(out, batch_sizes)
        # the gradient of each gate (r, z, and n before the reset gate) is that of the hidden state times a factor
        to_n = torch.addcmul(_HALF, n, n, value=-0.5).mul_(1 - z)
        factors = torch.empty_like(gates).view(*n.shape[:2], 3, n_cells)
        torch.mul(to_n, r, out=factors[:, :, 2])
        torch.mul(factors[:, :, 2] * hidden_n, 1 - r, out=factors[:, :, 0])
        torch.mul((before - n).mul_(z), 1 - z, out=factors[:, :, 1])
        d_states = torch.stack([d_out[indices[0], :n_cells], d_out[indices[1], n_cells:]])  # [2, N, h]
        d_gates = torch.empty_like(factors)
        go_back = products_with(weight.transpose(1, 2))
        d_hidden = gates.new_zeros(2, batch_sizes[0], n_cells)
        arrays = (torch.split(array, batch_sizes, dim=1) for array in (d_states, factors, d_gates, z))
        for dh, factor, d_gate, keep in reversed(list(zip(*arrays, strict=True))):
            later = d_hidden[:, : dh.shape[1]]  # of rows that end here it is still zero
            dh += later
            torch.mul(factor, dh.unsqueeze(2), out=d_gate)
            torch.addcmul(go_back(d_gate.flatten(2)), dh, keep, out=later)
        d_gates = d_gates.flatten(2)
        d_weight = torch.bmm(before.transpose(1, 2), d_gates)
        d_hidden_n = d_gates[..., 2 * n_cells :]
        d_bias_n = d_hidden_n.sum(dim=1, keepdim=True)
        torch.mul(d_states, to_n, out=d_hidden_n)  # from here on d_gates is that of the input's part
        return _unpacked(d_gates, indices, len(d_out)), d_weight, d_bias_n, None, None


def _unpacked(packed: Tensor, indices: Tensor, n_rows: int) -> Tensor:
    """``[2, N, P]`` to ``[n_rows, 2 P]``, zeros on padding."""
    rows = packed.new_zeros(n_rows, 2, packed.shape[2])
    for direction in (0, 1):
        rows[indices[direction], direction] = packed[direction]
    return rows.flatten(1)
