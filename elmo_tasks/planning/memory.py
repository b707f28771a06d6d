"""How much memory a process of this machine may have."""

from __future__ import annotations

import os
from pathlib import Path

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
