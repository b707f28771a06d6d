"""SIGTERM and Ctrl-C: the state of training is saved, one sentence says how to resume, and the status is 128 + signal.

This module imports nothing slow, so that a program can install its handlers before it imports PyTorch. A signal that
comes during an import ends the process without an exception: some packages catch whatever their parts raise, and go on
half imported.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGINT)
SECOND_SIGNAL_SECONDS = 3.0
"""Seconds after which a second signal ends a process that still saves; before that it may be the same event."""
DEFAULT_MESSAGE = "what was finished before is kept"


class Interrupted(SystemExit):
    """The process ends with the status that a shell expects, 143 or 130, and without a traceback."""


class _State:
    installed = False
    deferred = False
    received: int | None = None
    since = 0.0


def install() -> None:
    """Handle SIGTERM and SIGINT from here on."""
    _State.installed = True
    reinstall()


def reinstall() -> None:
    """Put the handlers back, if :func:`install` was called, where a library has put its own in their place."""
    if not _State.installed:
        return
    for number in SIGNALS:
        signal.signal(number, _handle)


@contextmanager
def deferred() -> Iterator[None]:
    """Within it the first signal only shows in :func:`received`, for code that has something to save."""
    _State.deferred = True
    try:
        yield
    finally:
        _State.deferred = False


def received() -> int | None:
    """The number of the signal that has come; None if none has."""
    return _State.received


def end(saved: str = DEFAULT_MESSAGE, *, silently: bool = False) -> NoReturn:
    """End the process because of the signal that has come.

    Args:
        saved: what is said to be saved.
        silently: say nothing, since another process of the run does.

    Raises:
        Interrupted: always.
    """
    raise Interrupted(_settle(None if silently else saved))


def _settle(saved: str | None) -> int:
    """Print the sentence, if any, and return the exit status; the signal then counts as handled."""
    number = _State.received or signal.SIGTERM
    if saved is not None:
        name = signal.Signals(number).name
        print(f"{name}: {saved}; run the same command again to resume", file=sys.stderr, flush=True)
    _State.received = None
    return 128 + number


def _handle(number: int, frame: FrameType | None) -> None:
    again = _State.received is not None and time.monotonic() - _State.since > SECOND_SIGNAL_SECONDS
    if _State.received is None:
        _State.received, _State.since = number, time.monotonic()
    if again or not _State.deferred:
        if _is_import(frame):
            os._exit(_settle(DEFAULT_MESSAGE))
        end()


def _is_import(frame: FrameType | None) -> bool:
    """Whether a signal has come during an import."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
