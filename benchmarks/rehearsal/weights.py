"""Random biLM weights of the sizes in ``conf/bilm``, in bilm-tf's layout."""

from __future__ import annotations

from pathlib import Path

import torch

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.sizes import SIZES


def write_bilm(folder: Path, size: str, seed: int) -> int:
    """Write ``options.json`` and ``weights.hdf5``; the number of parameters is returned.

    Raises:
        UserError: if they cannot be written.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        bilm = BiLM(SIZES[size])
    bilm.save(folder)
    return sum(p.numel() for p in bilm.parameters())
