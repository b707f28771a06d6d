"""Sentences of different lengths as one packed block, longest first, for both reading directions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Packing:
    """Where each of N packed positions comes from.

    Attributes:
        batch_sizes: number of active rows at each step.
        rows: long ``[N]``, the row of a packed position (row 0 is the longest).
        positions: long ``[2, N]``, the position within the row, by reading direction.
    """

    batch_sizes: list[int]
    rows: Tensor
    positions: Tensor

    @classmethod
    def from_lengths(cls, lengths: Sequence[int]) -> Packing:
        """Pack rows whose ``lengths`` do not increase."""
        size = torch.tensor(lengths)
        live = torch.arange(max(lengths)).unsqueeze(1) < size  # [steps, rows]
        steps, rows = live.nonzero(as_tuple=True)  # step-major
        return cls(live.sum(dim=1).tolist(), rows, torch.stack([steps, size[rows] - 1 - steps]))

    def pack(self, padded: Tensor) -> Tensor:
        """``[rows, T, ...]`` to ``[2, N, ...]``, each direction in its reading order."""
        return padded[self.rows, self.positions]

    def unpack(self, packed: Tensor) -> Tensor:
        """``[2, N, P]`` to ``[rows, T, 2 P]``: both directions of a position side by side, zeros on padding."""
        n_rows, n_steps, width = self.batch_sizes[0], len(self.batch_sizes), packed.shape[2]
        padded = packed.new_zeros(n_rows, n_steps, 2 * width)
        for direction in (0, 1):
            columns = slice(direction * width, (direction + 1) * width)
            padded[self.rows, self.positions[direction], columns] = packed[direction]
        return padded


def previous_states(states: Tensor, batch_sizes: Sequence[int]) -> Tensor:
    """The state before each packed position, zero at the first step: ``[..., N, h]`` to the same shape."""
    steps = torch.split(states, list(batch_sizes), dim=-2)[:-1]
    first = states.new_zeros(*states.shape[:-2], batch_sizes[0], states.shape[-1])
    later = (step[..., :n_rows, :] for step, n_rows in zip(steps, batch_sizes[1:], strict=True))
    return torch.cat([first, *later], dim=-2)


def step_ranges(batch_sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Start and end (exclusive) of each step's packed positions."""
    start = 0
    for live in batch_sizes:
        yield start, start + live
        start += live
