import os
import signal
import subprocess
import sys

import pytest

from elmo_tasks import interrupts
from elmo_tasks.command_line import run_command
from elmo_tasks.errors import UserError


@pytest.fixture(autouse=True)
def no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_tasks.interrupts.install", lambda: None)


def failing(error: Exception):
    def command(arguments: list[str]) -> int:
        raise error

    return command


def test_a_command_gets_its_arguments_and_ends_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    run_command(lambda arguments: 0 if arguments == ["a", "b"] else 2, ("a", "b"))
    monkeypatch.setattr(sys, "argv", ["program", "c"])
    run_command(lambda arguments: None if arguments == ["c"] else 2)
    with pytest.raises(SystemExit) as ended:
        run_command(lambda arguments: 3, [])
    assert ended.value.code == 3


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (UserError("data.root=x: no such folder"), "error: data.root=x: no such folder"),
        (PermissionError(13, "Permission denied", "a.txt"), "error: a.txt: Permission denied"),
    ],
)
def test_what_a_user_can_mend_is_one_sentence(error: Exception, sentence: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run_command(failing(error), [])
    assert ended.value.code == sentence  # Python prints it and ends with status 1


@pytest.mark.parametrize("error", [ValueError("x"), OSError("something else")])
def test_a_mistake_of_the_program_is_not_hidden(error: Exception) -> None:
    with pytest.raises(type(error), match=str(error)):
        run_command(failing(error), [])


def test_a_pipe_that_is_closed_early_is_not_an_error() -> None:
    program = "from elmo_tasks.command_line import run_command; run_command(lambda _: print('x' * 100_000, flush=True))"
    end, start = os.pipe()
    os.close(end)
    done = subprocess.run([sys.executable, "-c", program], stdout=start, stderr=subprocess.PIPE, text=True)
    os.close(start)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_process_of_several_speaks_of_a_signal_and_all_end_with_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for silently, said in ((False, "SIGTERM: the state is saved; run the same command again to resume\n"), (True, "")):
        monkeypatch.setattr(interrupts._State, "received", signal.SIGTERM)
        with pytest.raises(interrupts.Interrupted) as ended:
            interrupts.end("the state is saved", silently=silently)
        assert ended.value.code == 128 + signal.SIGTERM
        assert capsys.readouterr().err == said
        assert interrupts.received() is None


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("could not create a primitive")])
def test_no_memory_is_a_sentence_and_another_mistake_a_traceback(error: Exception) -> None:
    def fail(_: list[str]) -> None:
        raise error

    with pytest.raises(SystemExit, match=r"^error: no memory is left \(.+\): raise the limit .*; or give it less"):
        run_command(fail, [])

    def mistake(_: list[str]) -> None:
        raise RuntimeError("a mistake")

    with pytest.raises(RuntimeError, match="a mistake"):
        run_command(mistake, [])
