"""The biLM's LSTM with projection, cell clipping and projection clipping, both directions side by side.

Sequences are packed, longest first, time-major: step t has the rows 0 .. ``batch_sizes[t]`` - 1, and N is the
number of positions of all steps. The backward direction reads each sequence from its end, so that both directions
have the same active rows at each step and share one batched product. Nothing is computed for padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_tasks.bilm.lstm_inference import run_direction
from elmo_tasks.bilm.lstm_training import LSTMFunction

_BLOCK_FLOATS = 32_000_000  # gate activations of one block of steps: 128 MB

State = tuple[Tensor, Tensor]
"""Projected output ``[2, B, P]`` and cell ``[2, B, H]`` of both directions."""


class ProjectedLSTM(nn.Module):
    """One layer, two directions (TensorFlow's ``LSTMCell``; gate order i, j, f, o).

    As in bilm-tf there is no projection where it would not make the output narrower. Then H is P, and ``proj_clip`` has
    no effect.

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

    def forward(self, x: Tensor, batch_sizes: Sequence[int], state: State, int8: bool = False) -> tuple[Tensor, State]:
        """Run over packed sequences.

        Args:
            x: ``[2, N, input_dim]``, each direction in its own reading order.
            batch_sizes: number of active rows at each step, not increasing.
            state: initial state of each row; no gradient flows into it (truncated backpropagation).
            int8: round what is multiplied to 8 bits; on a CPU without gradients only.

        Returns:
            outputs ``[2, N, P]`` and the final state of each row.

        Raises:
            ValueError: for products of 8 bits elsewhere than on a CPU without gradients.
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
            directions = (
                run_direction(
                    x[k], weight[k], bias[k], projection, batch_sizes, (state[0][k], state[1][k]), clips, int8
                )
                for k, projection in enumerate((None, None) if w_projection is None else w_projection)
            )
            out, hidden, cell = map(torch.stack, zip(*directions, strict=True))
            return out, (hidden, cell)
        if int8:
            raise ValueError(f"precision int8 is for a CPU without gradients, not for {device} or for training")
        out, hidden, cell = LSTMFunction.apply(  # type: ignore[no-untyped-call]
            x, weight, bias, w_projection, *state, list(batch_sizes), self.cell_clip, self.proj_clip
        )
        return out, (hidden, cell)


def run_in_blocks(
    lstm: ProjectedLSTM, x: Tensor, batch_sizes: Sequence[int], state: State, int8: bool
) -> tuple[Tensor, State]:
    """Run a layer over blocks of steps, which bounds the memory of the gates for very long texts.

    With gradients there is one block, since no gradient flows into its initial state. The arguments and the result are
    those of :meth:`ProjectedLSTM.forward`.
    """
    if torch.is_grad_enabled():
        whole: tuple[Tensor, State] = lstm(x, batch_sizes, state, int8)
        return whole
    limit = max(1, _BLOCK_FLOATS // (8 * lstm.dim))
    outs, first, begin = [], 0, 0
    while first < len(batch_sizes):
        last, end = first, begin
        while last < len(batch_sizes) and (last == first or end + batch_sizes[last] - begin <= limit):
            end += batch_sizes[last]
            last += 1
        out, state = lstm(x[:, begin:end], batch_sizes[first:last], state, int8)
        outs.append(out)
        first, begin = last, end
    return (outs[0] if len(outs) == 1 else torch.cat(outs, dim=1)), state
