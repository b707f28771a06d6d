"""SIGTERM, Ctrl-C and the like: the state of training is saved, one sentence says how to resume, the status is 128 + n.

SIGHUP comes when a terminal closes; SIGUSR1 and SIGUSR2 come from Slurm (``#SBATCH --signal``) and submitit before a
time limit.

This module imports nothing slow, so that a program can install its handlers before it imports PyTorch. A signal that
comes during an import ends the process without an exception: some packages catch whatever their parts raise, and go on
half imported.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, ClassVar, NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_URGENT = (signal.SIGTERM, signal.SIGINT)
SECOND_SIGNAL_SECONDS = 3.0
"""Seconds after which a second SIGTERM or Ctrl-C ends a process that still saves; before, it may be the same event."""
DEFAULT_MESSAGE = "what was finished before is kept"


class Interrupted(SystemExit):
    """The process ends with the status that a shell expects, such as 143 or 130, and without a traceback."""


class _State:
    installed = False
    deferred = False
    received: int | None = None
    since = -math.inf  # when SIGTERM or Ctrl-C came first
    ended = -math.inf  # when the process began to end
    earlier: ClassVar[dict[int, Any]] = {}  # handlers that were there, such as submitit's, by number


def install() -> None:
    """Handle the signals from here on; one that is ignored, such as SIGHUP under ``nohup``, stays ignored."""
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            found = signal.getsignal(number)
            if found is not _handle:
                _State.earlier[number] = found
        _State.installed, _State.ended = True, -math.inf
        reinstall()


def reinstall() -> None:
    """Put the handlers back, if :func:`install` was called, where a library has put its own in their place."""
    if not _State.installed:
        return
    for number in SIGNALS:
        if number in _URGENT or _State.earlier.get(number) is not signal.SIG_IGN:
            signal.signal(number, _handle)


@contextmanager
def deferred() -> Iterator[None]:
    """Within it the first signal only shows in :func:`received`, for code that has something to save."""
    before, _State.deferred = _State.deferred, True
    try:
        yield
    finally:
        _State.deferred = before


@contextmanager
def held(saved: str = DEFAULT_MESSAGE) -> Iterator[None]:
    """A signal that comes within it ends the process afterwards, for code that must not be left in the middle.

    Raises:
        Interrupted: afterwards, if a signal has come and nothing around this defers it.
    """
    with deferred():
        yield
    if _State.received is not None and not _State.deferred:
        end(saved)


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
    raise Interrupted(128 + _settle(None if silently else saved))


def hand_on(ended: Interrupted) -> None:
    """Call the handler that was there before, now that all is saved: submitit's, which may requeue the job."""
    _call_earlier(int(ended.code or 0) - 128)


def _call_earlier(number: int) -> None:
    handler = _State.earlier.get(number)
    if callable(handler) and handler is not signal.default_int_handler:
        handler(number, None)


def _settle(saved: str | None) -> int:
    """Print the sentence, if any, and return the number of the signal, which then counts as handled."""
    number = _State.received or signal.SIGTERM
    _State.received, _State.since, _State.ended = None, -math.inf, time.monotonic()
    if saved is not None:
        name = signal.Signals(number).name
        with suppress(OSError):  # the terminal may be gone
            print(f"{name}: {saved}; run the same command again to resume", file=sys.stderr, flush=True)
    return number


def _handle(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if number == signal.SIGHUP:
        _leave_terminal()
    if now - _State.ended < SECOND_SIGNAL_SECONDS:  # the same event
        return
    again = number in _URGENT and SECOND_SIGNAL_SECONDS < now - _State.since < math.inf
    if _State.received is None:
        _State.received = number
    if number in _URGENT and not again:
        _State.since = now
    if again or not _State.deferred:
        if _is_import(frame):
            _exit_at_once()
        end()


def _exit_at_once() -> NoReturn:
    number = _settle(DEFAULT_MESSAGE)
    try:
        _call_earlier(number)
    finally:
        os._exit(128 + number)


def _leave_terminal() -> None:
    """Print to nowhere what would go to a terminal that has closed: the state is still to be saved."""
    for descriptor in (1, 2):
        try:
            os.write(descriptor, b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _is_import(frame: FrameType | None) -> bool:
    """Whether a signal has come during an import."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
