"""The runs that a table still lacks, as commands, and making them."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.settings import NO_ROOT, REPO


@dataclass(frozen=True)
class Job:
    """One command line.

    Args:
        overrides: of ``run.py``.
        after: whether it is an ensemble, which needs its members' runs first.
    """

    overrides: tuple[str, ...]
    after: bool = False

    @property
    def command(self) -> str:
        return shlex.join(["python", "run.py", *self.overrides])
