"""One run, one owner: a lock that ends with its process, also on a network file system and between machines."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from elmo_tasks.errors import UserError, shortened
from elmo_tasks.files import OTHER_FOLDER, read_object

_PAUSE = 1.0  # seconds between two tries

BUSY = (errno.EAGAIN, errno.EACCES)
"""Numbers of the errors that say that another process holds a lock."""


@contextmanager
def owned(path: Path, *, wait: bool, remedy: str = "set if_running=wait to wait for it") -> Iterator[None]:
    """Hold the lock of a run.

    The lock is a POSIX one: the kernel (or the server of the network file system) releases it when the process ends,
    whatever ends it. The file says who holds it; it is removed with the lock.

    Args:
        path: of the lock's file.
        wait: for the present owner to end; else its run is an error.
        remedy: what the error says can be done.

    Raises:
        UserError: if another process holds the lock, saying which, on which machine and since when; or if the file
            cannot be written.
    """
    file = _open(path)
    announced = False
    while not _locked(file) or not is_at(path, file.fileno()):
        if not is_at(path, file.fileno()):
            file.close()
            file = _open(path)
            continue
        owner = _owner(path)
        if not wait:
            raise UserError(f"{path.stem}: this run is already being made by {owner}; {remedy}")
        if not announced:
            print(f"{path.stem}: waiting for {owner}", file=sys.stderr, flush=True)
            announced = True
        time.sleep(_PAUSE)
    try:
        _write_owner(file, path)
        yield
    finally:
        path.unlink(missing_ok=True)  # before the lock is released: a waiting process sees that its file is gone
        file.close()


def _open(path: Path) -> TextIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if path.is_symlink():
            raise UserError(f"{path}: a link, which is not written through; remove it") from error
        raise UserError(f"{path}: cannot be written ({error.strerror}); {OTHER_FOLDER}") from error
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise UserError(f"{path}: another name of a file that is elsewhere too, which is not written to; remove it")
    return os.fdopen(descriptor, "a+", encoding="utf-8")


def _write_owner(file: TextIO, path: Path) -> None:
    try:
        file.truncate(0)
        file.write(json.dumps(_about_this_process()))
        file.flush()
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); {OTHER_FOLDER}") from error


def _locked(file: TextIO) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in BUSY:
            return False
        raise UserError(f"{file.name}: cannot be locked ({error.strerror}); {OTHER_FOLDER}") from error
    return True


def is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file is the one at ``path`` now; not if its last owner has removed it since it was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _about_this_process() -> dict[str, Any]:
    about = {"host": socket.gethostname(), "pid": os.getpid(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
    job = os.environ.get("SLURM_JOB_ID")
    return about if job is None else {**about, "job": job}


def _owner(path: Path) -> str:
    try:
        owner = read_object(path, {"host": str, "pid": int, "since": str})
    except UserError:  # it has only now been made
        return "another process"
    job = f"Slurm job {shortened(str(owner['job']), 40)}, " if "job" in owner else ""
    return f"{job}process {owner['pid']} on {shortened(owner['host'], 60)}, since {shortened(owner['since'], 40)}"
