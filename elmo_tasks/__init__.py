"""Downstream-task experiments with frozen ELMo layers (Peters et al., 2018).

The names below are imported when they are first used, since PyTorch takes seconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tasks.bilm.model import BiLM
    from elmo_tasks.elmo import Elmo, ScalarMix
    from elmo_tasks.embedding import embed
    from elmo_tasks.predict.predictor import load_run

__version__ = "0.2.0"
__all__ = ["BiLM", "Elmo", "ScalarMix", "embed", "load_run"]

_MODULES = {
    "BiLM": "elmo_tasks.bilm.model",
    "Elmo": "elmo_tasks.elmo",
    "ScalarMix": "elmo_tasks.elmo",
    "embed": "elmo_tasks.embedding",
    "load_run": "elmo_tasks.predict.predictor",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'elmo_tasks' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
