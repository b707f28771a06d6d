"""Memory of the process."""

from __future__ import annotations

from pathlib import Path


def peak_megabytes() -> float:
    """The largest resident memory of this process so far (Linux; its ru_maxrss would include the parent's)."""
    status = Path("/proc/self/status").read_text("utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024
