"""The file of a saved state, as Lightning writes and reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytorch_lightning.plugins.io import CheckpointIO

from elmo_tasks.tensors import read_metadata
from elmo_tasks.training import tree


class TensorsAndJson(CheckpointIO):
    """Lightning's checkpoints as a safetensors file (see :mod:`elmo_tasks.training.tree`)."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        tree.write_tree(Path(path), checkpoint)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        return tree.read_tree(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def read_updates(path: Path) -> int:
    """How many updates a saved state has behind it, from the file's header alone.

    Raises:
        UserError: if the file is damaged.
    """
    with tree.advising(path):
        n_updates = int(dict(json.loads(read_metadata(path)["state"])["dict"])["global_step"])
    return n_updates
