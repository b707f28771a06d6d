"""Processes that train one biLM together: each reads some rows of every window, and all have the same weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, distributed


@dataclass(frozen=True)
class Team:
    """``n`` processes, of which this is number ``rank``; they have been joined by ``torch.distributed``."""

    n: int = 1
    rank: int = 0

    def rows(self, n_rows: int) -> slice:
        """The rows of this process."""
        share = n_rows // self.n
        return slice(self.rank * share, (self.rank + 1) * share)

    def sum_(self, part: Tensor) -> Tensor:
        """Add up the tensors of all processes, in place."""
        if self.n > 1:
            distributed.all_reduce(part)
        return part

    def average_(self, part: Tensor) -> None:
        """Replace the tensors of all processes by their mean."""
        if self.n > 1:
            self.sum_(part).div_(self.n)

    def gather(self, part: Tensor) -> list[Tensor]:
        """The tensors of all processes."""
        if self.n == 1:
            return [part]
        parts = [torch.empty_like(part) for _ in range(self.n)]
        distributed.all_gather(parts, part.contiguous())
        return parts

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether a flag is set in any process."""
        return flag if self.n == 1 else bool(self.sum_(torch.tensor(float(flag), device=device)))
