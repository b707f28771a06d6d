"""Random biLM weights of the published sizes, in bilm-tf's layout."""

from __future__ import annotations

from pathlib import Path

import torch

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.options import BiLMOptions

_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))

SIZES = {
    "small": BiLMOptions(filters=_FILTERS, character_dim=16, n_highway=1, dim=1024, projection_dim=128),
    "medium": BiLMOptions(filters=_FILTERS, character_dim=16, n_highway=1, dim=2048, projection_dim=256),
    "original": BiLMOptions(filters=_FILTERS, character_dim=16, n_highway=2, dim=4096, projection_dim=512),
}
"""The sizes that ``bilm=small``, ``medium`` and ``original`` name."""


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
