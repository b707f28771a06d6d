"""A bidirectional GRU layer whose steps on a CPU have a hand-written backward pass.

PyTorch has a fused LSTM there but no fused GRU: it runs one direction after the other and records about fifteen small
operations a step. Here both directions run together. A step is one product per direction with a weight that is
prepacked once (:func:`elmo_tasks.nn.linear.products_with`). Nothing is computed for padding: rows are packed, longest
first (see :mod:`elmo_tasks.nn.packing`; N is the number of packed positions). On a GPU, PyTorch's layer is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_tasks.nn.linear import linear, products_with
from elmo_tasks.nn.packing import Packing, step_ranges

_ONE = torch.ones(())
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
        places = order[packing.rows] * n_tokens + packing.positions  # [2, N]
        # the hidden state's biases of r and z are added to the input's; that of n is multiplied by the reset gate
        bias_rz, bias_n = torch.split(self._both("bias_hh"), [self.dim, self.hidden], dim=1)
        bias = self._both("bias_ih") + F.pad(bias_rz, (0, self.hidden))
        weight = self._both("weight_hh").transpose(1, 2)
        with torch.autocast("cpu", enabled=False):  # a state of low precision would drift
            gates = linear(x.to(bias.dtype), self._both("weight_ih").flatten(0, 1), bias.flatten()).flatten(0, 1)
            out: Tensor = _Steps.apply(gates, weight, bias_n.unsqueeze(1), places, packing.batch_sizes)  # type: ignore[no-untyped-call]
        return out.view(n_texts, n_tokens, self.dim)

    def _both(self, name: str) -> Tensor:
        """A parameter of both directions, ``[2, ...]``."""
        return torch.stack([getattr(self.gru, f"{name}_l0"), getattr(self.gru, f"{name}_l0_reverse")])


class _Steps(torch.autograd.Function):
    """All steps, from zero states: gates ``r, z, n`` as in :class:`torch.nn.GRU`.

    ``tanh(x)`` is computed as ``2 sigmoid(2 x) - 1``, which is several times faster. The arrays of one step fit into
    the cache; only the products run over all steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,  # [B T, 2 * 3 H] the input's part of the gates, H cells of a direction
        weight: Tensor,  # [2, H, 3 H] from the hidden state to the gates
        bias_n: Tensor,  # [2, 1, H]
        places: Tensor,  # [2, N] the row of x of each packed position, by direction
        batch_sizes: Sequence[int],  # active rows at each step, not increasing
    ) -> Tensor:  # [B T, 2 H], zero on padding
        n_cells = weight.shape[1]
        gates = torch.stack([x[places[0], : 3 * n_cells], x[places[1], 3 * n_cells :]])  # [2, N, 3 H]
        out, before, hidden_n = (gates.new_empty(2, gates.shape[1], n_cells) for _ in range(3))
        advance = products_with(weight)
        state = gates.new_zeros(2, batch_sizes[0], n_cells)
        for start, stop in step_ranges(batch_sizes):
            h = state[:, : stop - start]
            before[:, start:stop] = h
            product = advance(h)
            gate, u = gates[:, start:stop], hidden_n[:, start:stop]
            r, z, n = gate.chunk(3, dim=2)
            gate[..., : 2 * n_cells].add_(product[..., : 2 * n_cells]).sigmoid_()
            torch.add(product[..., 2 * n_cells :], bias_n, out=u)
            n.addcmul_(r, u).mul_(2).sigmoid_().mul_(2).sub_(1)
            state = torch.lerp(n, h, z)
            out[:, start:stop] = state
        ctx.save_for_backward(gates, weight, hidden_n, before, places)
        ctx.batch_sizes = batch_sizes
        return _at_places(out, places, len(x))

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        gates, weight, hidden_n, before, places = ctx.saved_tensors
        n_cells, batch_sizes = weight.shape[1], ctx.batch_sizes
        d_states = torch.stack([d_out[places[0], :n_cells], d_out[places[1], n_cells:]])  # [2, N, H]
        go_back = products_with(weight.transpose(1, 2))
        d_gates = torch.empty_like(gates)  # r, z, and n before the reset gate
        d_n = torch.empty_like(before)
        d_hidden = gates.new_zeros(2, batch_sizes[0], n_cells)
        for start, stop in reversed(list(step_ranges(batch_sizes))):
            r, z, n = gates[:, start:stop].chunk(3, dim=2)
            d_gate, dn = d_gates[:, start:stop], d_n[:, start:stop]
            d_r, d_z, d_u = d_gate.chunk(3, dim=2)
            dh = d_hidden[:, : stop - start]  # later rows are still zero
            dh += d_states[:, start:stop]
            kept = dh * z
            torch.mul(dh - kept, torch.addcmul(_ONE, n, n, value=-1), out=dn)
            torch.mul(dn, r, out=d_u)
            torch.mul(d_u * hidden_n[:, start:stop], 1 - r, out=d_r)
            torch.mul(kept * (before[:, start:stop] - n), 1 - z, out=d_z)
            torch.add(kept, go_back(d_gate), out=dh)
        d_weight = torch.bmm(before.transpose(1, 2), d_gates)
        d_hidden_n = d_gates[..., 2 * n_cells :]
        d_bias_n = d_hidden_n.sum(dim=1, keepdim=True)
        d_hidden_n.copy_(d_n)  # from here on d_gates is that of the input's part, without the reset gate
        return _at_places(d_gates, places, len(d_out)), d_weight, d_bias_n, None, None


def _at_places(packed: Tensor, places: Tensor, n_rows: int) -> Tensor:
    """``[2, N, P]`` to ``[n_rows, 2 P]``, zeros on padding."""
    rows = packed.new_zeros(n_rows, 2, packed.shape[2])
    for direction in (0, 1):
        rows[places[direction], direction] = packed[direction]
    return rows.flatten(1)
