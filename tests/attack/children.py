"""Runs in processes that are forked from this one, which has imported everything, so that a start takes no time."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from elmo_tasks.cli import run as program

REPO = Path(__file__).parents[2]


class Child:
    """A forked process, the leader of a group of its own, that runs a function.

    Args:
        run: the function; its SystemExit is the child's status.
        log: gets everything that it prints.
        errors: gets what it prints to the standard error; the log, if None.
    """

    def __init__(self, run: Callable[[], None], log: Path, errors: Path | None = None) -> None:
        self.log, self.errors, self.status = log, errors or log, None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(run, self.log, self.errors)

    def poll(self) -> int | None:
        """The exit status (minus the signal that killed it), or None while it runs."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status

    def wait(self, seconds: float) -> int | None:
        """The exit status, or None if it still runs after so long."""
        deadline = time.monotonic() + seconds
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.status

    def signal(self, number: int, group: bool = False) -> None:
        """Send a signal, to the processes that it has started too if ``group``."""
        if self.poll() is None:
            (os.killpg if group else os.kill)(self.pid, number)

    def output(self) -> str:
        """All that it printed."""
        return self.log.read_text("utf-8", "replace")

    def end(self) -> None:
        """Kill whatever is left of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.status is None:
            self.wait(30)


def start_run(arguments: list[str]) -> None:
    """``run.py`` with these arguments; further processes of a distributed run are started as ``run.py`` too."""
    sys.modules["__main__"].__spec__ = None  # else Lightning would start this process's own module, pytest
    program.start(arguments, str(REPO / "run.py"))


def _become(run: Callable[[], None], log: Path, errors: Path) -> NoReturn:
    """What the child does instead of what the parent goes on with."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where the tests themselves run under nohup
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, path in ((1, log), (2, errors)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))  # a test's are captured
        os.chdir(REPO)
        run()
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
