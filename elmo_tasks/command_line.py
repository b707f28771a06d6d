"""How every command starts and ends: signals, errors that a user can fix, closed pipes, the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from elmo_tasks import interrupts
from elmo_tasks.errors import UserError, out_of_memory
from elmo_tasks.places import expand_home

OUTPUTS = "ELMO_TASKS_OUTPUTS"
"""The variable that names the folder of all outputs; see conf/config.yaml."""

Command = Callable[[list[str]], int | None]
"""Takes the arguments and returns the exit status; None is 0."""


def run_command(command: Command, arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error that a user can fix ends the process with one sentence and status 1.

    Args:
        command: what is run.
        arguments: of the command; None for those of this process.

    Raises:
        SystemExit: if the exit status is not 0.
    """
    interrupts.install()
    if OUTPUTS in os.environ:  # where no shell has replaced a ~, as in a file of variables
        os.environ[OUTPUTS] = expand_home(os.environ[OUTPUTS])
    try:
        status = command([*(sys.argv[1:] if arguments is None else arguments)])
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        return
    except UserError as error:
        fail(error)
    except (MemoryError, OSError, RuntimeError) as error:
        if (sentence := out_of_memory(error, "or give it less at a time")) is not None:
            fail(sentence)
        if not isinstance(error, OSError) or error.filename is None:  # no file could be named: a mistake of the program
            raise
        fail(UserError(f"{error.filename}: {error.strerror}"))
    if status:
        sys.exit(status)


def fail(error: UserError) -> NoReturn:
    """End the process with the sentence of an error, and status 1."""
    sys.exit(f"error: {error}")
