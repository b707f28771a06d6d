"""Whether memory and disk of this machine have room for a run."""

from __future__ import annotations

import os
from pathlib import Path

from elmo_tasks.errors import UserError
from elmo_tasks.files import free_bytes
from elmo_tasks.formatting import format_bytes

_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def available_bytes() -> int | None:
    """The machine's memory, or a container's limit if that is lower; None if it cannot be known."""
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (ValueError, OSError, AttributeError):
        return None
    for path in _CGROUP_LIMITS:
        try:
            limits.append(int(path.read_text("ascii")))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)


def allow_memory(n_bytes: int) -> None:
    """Refuse a step that this machine cannot hold.

    Raises:
        UserError: with what it takes and what there is.
    """
    there = available_bytes()
    if there is not None and n_bytes > there:
        raise UserError(
            f"the largest batch needs about {format_bytes(n_bytes)} of memory, but only {format_bytes(there)} is "
            "available; lower task.training.batch_tokens or task.training.batch_size"
        )


def check_disk(folder: Path, n_bytes: int) -> None:
    """Refuse a run whose weights the disk cannot hold.

    Raises:
        UserError: with what they take and what is free.
    """
    free = free_bytes(folder)
    if n_bytes > free:
        raise UserError(
            f"weights and state of training take {format_bytes(n_bytes)}, but only {format_bytes(free)} are free in "
            f"{folder}; set paths.outputs to another disk"
        )
