"""Locks that end with their process: who uses a folder of shards, and who computes which sentences.

Each lock is an empty file that is held by ``flock``, which works on local disks and, since Linux 2.6.12, on NFS. On a
file system without locks every lock is granted: then several processes may compute the same sentence, and ``prune`` has
only the age of a folder to go by. Two stores of one process keep each other out too, which the POSIX locks of
:mod:`elmo_tasks.lock` do not; those are not inherited by a forked child, which a ``flock`` is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import finalize

from elmo_tasks.lock import BUSY, is_at

_USE = "use"


class Lock:
    """A lock that is held until :meth:`release`, until nothing refers to it, or until this process ends."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._close = None if descriptor is None else finalize(self, os.close, descriptor)

    @property
    def holds(self) -> bool:
        """Whether it keeps others out; on a file system without locks it does not."""
        return self._descriptor is not None

    def is_of(self, path: Path) -> bool:
        """Whether it is on the file that is at ``path`` now; a lock that holds nothing is on any."""
        return self._descriptor is None or is_at(path, self._descriptor)

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._close is not None:
            self._close()


def locks_folder(folder: Path) -> Path:
    """Where the locks of a folder of shards are."""
    return folder / "locks"


def mark_in_use(folder: Path) -> Lock | None:
    """Mark a folder as used by this process until the lock is released; other processes may use it too.

    The modification time of the lock file is that of the last use.

    Returns:
        the lock; None if the folder is not there, or is removed while this waits for the process that inspects it.
    """
    path = locks_folder(folder) / _USE
    while folder.is_dir():
        with suppress(OSError):  # a store that this user may only read
            _remove_links(path)
            path.parent.mkdir(exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            os.utime(descriptor)
            os.close(descriptor)
        lock = _take(path, fcntl.LOCK_SH, os.O_RDONLY)
        if lock is None or lock.is_of(path):
            return lock or Lock(None)
        lock.release()
    return None


@contextmanager
def nobody_uses(folder: Path) -> Iterator[bool]:
    """Whether no process uses a folder; within the context, none can start to."""
    lock = _take(locks_folder(folder) / _USE, fcntl.LOCK_EX | fcntl.LOCK_NB, os.O_RDWR)
    try:
        yield lock is not None
    finally:
        if lock is not None:
            lock.release()


def claim(folder: Path, name: str) -> Lock | None:
    """Take a named lock for this process alone; None if another one holds it."""
    path = locks_folder(folder) / name
    _remove_links(path)
    path.parent.mkdir(exist_ok=True)
    return _take(path, fcntl.LOCK_EX | fcntl.LOCK_NB, os.O_RDWR | os.O_CREAT)


def claim_writing(path: Path) -> Lock | None:
    """Take the lock on a file that its writer holds until it is complete; None if the writer lives."""
    return _take(path, fcntl.LOCK_EX | fcntl.LOCK_NB, os.O_RDWR)


def _remove_links(path: Path) -> None:
    """Remove what leads elsewhere in place of a lock or of its folder: no lock is a link."""
    for each in (path.parent, path):
        if each.is_symlink():
            each.unlink()


def last_used(folder: Path) -> float:
    """When a process last began to use a folder, in seconds since 1970."""
    use = locks_folder(folder) / _USE
    return (use if use.exists() else folder).stat().st_mtime


def _take(path: Path, kind: int, flags: int) -> Lock | None:
    """The lock; None if another process holds it. Where locks are not supported, the lock holds nothing."""
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError:
        return Lock(None)
    try:
        fcntl.flock(descriptor, kind)
    except OSError as error:
        os.close(descriptor)
        return None if error.errno in BUSY else Lock(None)
    return Lock(descriptor)
