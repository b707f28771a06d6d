"""The code and the versions that computed a row."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from elmo_tasks.rows.parts import Code

_PACKAGES = ("torch", "pytorch-lightning", "hydra-core", "numpy")


def provenance() -> dict[str, Any]:
    """A row's ``commit``, ``dirty`` (whether the working tree had changes) and ``versions`` of what computes."""
    return {**asdict(current_code()), "versions": {name: metadata.version(name) for name in _PACKAGES}}


@functools.cache
def current_code() -> Code:
    """The code of this process, as it was when this was first called."""
    status = _git("status", "--porcelain", "--untracked-files=no")
    return Code(commit=_git("rev-parse", "HEAD"), dirty=None if status is None else bool(status))


def _git(*arguments: str) -> str | None:
    folder = Path(__file__).parent
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
