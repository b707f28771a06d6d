"""The LSTM of the 2017 coreference model (Lee et al., section 4): coupled gates and recurrent dropout."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_tasks.nn.dropout import dropout_mask, dropout_rate
from elmo_tasks.nn.linear import linear
from elmo_tasks.nn.rnn import reversed_indices, take_rows


class BiCoupledLSTM(nn.Module):
    """One bidirectional layer over padded texts; padding has no influence and comes out as zeros.

    The forget gate is one minus the input gate: ``c = (1 - i) c' + i tanh(g)`` and ``h = o tanh(c)``. Dropout on the
    hidden state uses one mask for all steps of a text. The initial states are learned, the weights are initialised
    orthogonally by gate. Both directions run together: a step is one batched product.

    Args:
        input_dim: E.
        hidden: cells of a direction; H = 2 x hidden is ``dim``.
        dropout: rate on the hidden state.

    Raises:
        UserError: for a dropout rate outside of [0, 1).
    """

    def __init__(self, input_dim: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.hidden, self.dim, self.dropout = hidden, 2 * hidden, dropout_rate(dropout)
        self.input_weight = nn.Parameter(torch.empty(2, 3 * hidden, input_dim))  # i, g, o of either direction
        self.hidden_weight = nn.Parameter(torch.empty(2, 3 * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(2, 3 * hidden))
        self.initial_hidden = nn.Parameter(torch.empty(2, hidden))
        self.initial_cell = nn.Parameter(torch.empty(2, hidden))
        for direction in range(2):
            for gate in range(3):
                rows = slice(gate * hidden, (gate + 1) * hidden)
                whole = nn.init.orthogonal_(torch.empty(hidden, input_dim + hidden))
                self.input_weight.data[direction, rows] = whole[:, :input_dim]
                self.hidden_weight.data[direction, rows] = whole[:, input_dim:]
        for state in (self.initial_hidden, self.initial_cell):
            nn.init.xavier_uniform_(state)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """``[B, T, E]`` and bool ``[B, T]`` to ``[B, T, H]``."""
        indices = reversed_indices(mask)
        with torch.autocast(x.device.type, enabled=False):  # a state of low precision would drift
            x = x.to(self.bias.dtype)
            readings = (x, take_rows(x, indices))
            gates = [linear(read, self.input_weight[k], self.bias[k]) for k, read in enumerate(readings)]
            left, right = self._run(torch.stack(gates)).unbind()
        return torch.cat([left, take_rows(right, indices)], dim=2).masked_fill(~mask.unsqueeze(2), 0.0)

    def _run(self, gates: Tensor) -> Tensor:
        """All steps of both directions: the input's part of the gates ``[2, B, T, 3 h]`` to states ``[2, B, T, h]``."""
        n_texts = gates.shape[1]
        weight = self.hidden_weight.transpose(1, 2)
        h = self.initial_hidden.unsqueeze(1).expand(-1, n_texts, -1)
        cell = self.initial_cell.unsqueeze(1).expand(-1, n_texts, -1)
        keep = dropout_mask(gates, h.shape, self.dropout) if self.training and self.dropout > 0 else None
        states = []
        for step in gates.unbind(dim=2):
            read = h if keep is None else h * keep
            i, g, o = torch.baddbmm(step, read, weight).chunk(3, dim=2)
            cell = torch.lerp(cell, g.tanh(), i.sigmoid())
            h = o.sigmoid() * cell.tanh()
            states.append(h)
        return torch.stack(states, dim=2)
