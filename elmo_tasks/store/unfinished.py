"""Shards that are being written, and those that killed writers have left.

A writer holds a lock on its file of numbers until the index beside it has its name. A file that is not locked and has
no index is therefore nobody's.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from pathlib import Path

from elmo_tasks.store.locks import Lock, claim_writing


def begin(folder: Path) -> tuple[Path, Lock]:
    """An empty file for numbers, and its writer's lock on it."""
    while True:
        path = folder / f"{uuid.uuid4().hex}.bin.tmp"
        path.touch(exist_ok=False)
        lock = claim_writing(path)
        if lock is not None and lock.is_of(path):
            return path, lock
        # another process has found it before it was locked, and removes it


def remove_unfinished(folder: Path, seconds: float) -> None:
    """Remove the shards that killed writers have left unfinished.

    Args:
        folder: of shards.
        seconds: without locks, the age from which a file cannot be that of a writer that lives.
    """
    for path in (*folder.glob("*.bin.tmp"), *folder.glob("*.bin")):
        index = path.with_name(path.name.replace(".bin", ".idx"))
        with suppress(FileNotFoundError):  # finished or removed by another process
            if path.suffix == ".bin" and index.exists():
                continue
            lock = claim_writing(path)
            old = time.time() - path.stat().st_mtime > seconds
            # looked at again, now that it is locked
            if lock is not None and (lock.holds or old) and not (path.suffix == ".bin" and index.exists()):
                path.unlink()
    for path in folder.glob("*.idx.tmp"):
        numbers = path.with_name(path.name.replace(".idx.tmp", ".bin"))
        if not (numbers.exists() or numbers.with_suffix(".bin.tmp").exists()):
            path.unlink(missing_ok=True)
