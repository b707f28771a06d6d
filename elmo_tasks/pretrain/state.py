"""Reading the state from which a training resumes, and checking that it is this training's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from elmo_tasks.errors import UserError
from elmo_tasks.files import check_object
from elmo_tasks.training import tree

_PARTS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("weights", "average", "carried"), list),
    **dict.fromkeys(("optimizer", "random", "progress", "identity"), dict),
}
_PROGRESS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("updates", "best_epoch", "best_step", "halved"), int),
    **dict.fromkeys(("curve", "resumed_after", "code"), list),
    "seconds": (int, float),
    "patience_over": bool,
}


def read_state(path: Path, remedy: str, identity: Mapping[str, Any] | None) -> dict[str, Any]:
    """A saved state, of a training with a given identity, or of any.

    Raises:
        UserError: if the file is missing or damaged, or the state is of an earlier version or another training; the
            sentence ends in the ``remedy``.
    """
    state = tree.read_tree(path, remedy)
    if "progress" not in state:
        raise UserError(f"{path}: a state of an earlier version, from which this one cannot resume; {remedy}")
    with tree.advising(path, remedy):
        check_object(state, str(path), _PARTS)
        progress = check_object(state["progress"], f"{path}: progress", _PROGRESS)
        for name in ("updates", "seconds"):
            if not 0 <= progress[name] < math.inf:
                raise UserError(f"{path}: {name} must be at least 0, found {progress[name]}")
    saved = state["identity"]
    ours = saved if identity is None else identity
    for name in dict.fromkeys([*ours, *saved]):
        if ours.get(name) != saved.get(name):
            difference = f"its {name} is {saved.get(name)}, here it is {ours.get(name)}"
            raise UserError(f"{path}: the state of another training: {difference}; {remedy}")
    return state


def same_sizes(path: Path, remedy: str, ours: Mapping[str, list[Tensor]], saved: Mapping[str, list[Any]]) -> None:
    """Check that tensors of a state have the sizes and number formats of this training's.

    Raises:
        UserError: naming the first that has not.
    """
    for name, tensors in ours.items():
        found = [(tuple(each.shape), each.dtype) if isinstance(each, Tensor) else None for each in saved[name]]
        expected = [(tuple(each.shape), each.dtype) for each in tensors]
        if found != expected:
            sizes = " and ".join(str([pair and pair[0] for pair in pairs]) for pairs in (found, expected))
            raise UserError(f"{path}: not a saved state of this run ({name} of another size: {sizes}); {remedy}")
