"""SIGTERM, Ctrl-C and the like: the state is saved, a sentence says how to go on, and the status is that of the signal.

Most runs here are forked from the test's process, which has imported everything, and send the signal to themselves at
a step that is the same each time.
"""

import csv
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from attack.children import Child
from rows_as_json import load
from safetensors.torch import load_file

from elmo_tasks import interrupts
from elmo_tasks.bilm import hdf5
from elmo_tasks.cli import run as program
from elmo_tasks.command_line import run_command
from elmo_tasks.store import store
from elmo_tasks.store.shards import Shards
from elmo_tasks.tables import Column, Line, Table, make_command
from elmo_tasks.training import tree
from elmo_tasks.training.checkpoint import STATE, ResumeCheckpoint

REPO = Path(__file__).parents[2]
SMALL = (
    *("trainer.threads=1", "trainer.progress=false", "trainer.accelerator=cpu", "trainer.patience=null"),
    *("words=random", "data=sample"),
)
NER = ("task=ner", "elmo.placement=none", "trainer.max_epochs=2", "data.fraction=0.1")
LM = (
    *("task=lm", "task.data.batch_size=64", "task.model.n_samples=50", "trainer.max_epochs=2"),
    *("bilm.options.lstm.dim=12", "bilm.options.lstm.projection_dim=6"),
    *("bilm.options.char_cnn.filters=[[1,4],[2,8],[3,8]]", "bilm.options.char_cnn.embedding.dim=4"),
)
STATUS = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129, signal.SIGUSR1: 138, signal.SIGUSR2: 140}
SIGNALS = list(STATUS)

Prepare = Callable[[], object]


def run(outputs: Path, *overrides: str, prepare: Prepare = lambda: None) -> Child:
    """``run.py`` in a process of its own, where ``prepare`` is called first."""

    def begin() -> None:
        prepare()
        program.start([*overrides, *SMALL, f"paths.outputs={outputs}"], "run.py")

    outputs.mkdir(exist_ok=True)
    return Child(begin, outputs / "log.txt")


def signal_after(owner: Any, name: str, n_calls: int, number: signal.Signals) -> None:
    """The process sends itself a signal when a function has ended so many times."""
    real, calls = getattr(owner, name), []

    def call(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        calls.append(name)
        if len(calls) == n_calls:
            os.kill(os.getpid(), number)
        return result

    setattr(owner, name, call)


def when_saved(number: signal.Signals) -> Prepare:
    """The signal comes when the state of training has been saved once."""
    return partial(signal_after, tree, "write_tree", 1, number)


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """A closed terminal is told to the processes that a test starts, also where the tests run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def assert_told(child: Child, number: signal.Signals) -> str:
    """It ends with the signal's status and a sentence, which is returned, and without a traceback."""
    assert child.wait(200) == STATUS[number], child.output()
    assert "Traceback" not in child.output()
    (sentence,) = (line for line in child.output().splitlines() if line.startswith(f"{number.name}: "))
    assert sentence.endswith("run the same command again to resume")
    return sentence


def succeed(child: Child) -> None:
    assert child.wait(200) == 0, child.output()


def outcome(outputs: Path) -> tuple[Any, dict[str, torch.Tensor]]:
    (row,) = load(outputs / "rows")
    curve = [{**point, "seconds": 0} for point in row["training"]["curve"]]
    return (row["scores"], curve), load_file(outputs / "runs" / row["run_id"] / "model.safetensors")


@pytest.mark.parametrize("overrides", [NER, LM], ids=["ner", "lm"])
def test_a_signal_in_training_saves_the_state_and_the_same_command_ends_in_the_same_weights(
    tmp_path: Path, overrides: tuple[str, ...]
) -> None:
    succeed(run(tmp_path / "whole", *overrides))
    expected, weights = outcome(tmp_path / "whole")
    for number in SIGNALS:
        stopped = tmp_path / number.name
        sentence = assert_told(run(stopped, *overrides, prepare=when_saved(number)), number)
        assert "training is saved after" in sentence
        assert list(stopped.glob(f"runs/*.partial/{STATE}"))
        assert not list(stopped.glob("rows/*.json"))
        assert not list(stopped.glob("runs/*.lock"))
        succeed(run(stopped, *overrides))
        found, same = outcome(stopped)
        assert found == expected
        assert all(torch.equal(same[name], weights[name]) for name in weights)


def test_a_signal_after_the_last_update_ends_the_run_too(tmp_path: Path) -> None:
    succeed(run(tmp_path / "whole", *NER))
    at_the_end = partial(signal_after, ResumeCheckpoint, "on_train_epoch_end", 2, signal.SIGTERM)
    sentence = assert_told(run(tmp_path / "stopped", *NER, prepare=at_the_end), signal.SIGTERM)
    assert "training is saved" in sentence
    succeed(run(tmp_path / "stopped", *NER))
    (found, same), (expected, weights) = (outcome(tmp_path / name) for name in ("stopped", "whole"))
    assert found == expected
    assert all(torch.equal(same[name], weights[name]) for name in weights)


def test_a_signal_at_an_update_that_is_logged_loses_no_line_of_the_curves(tmp_path: Path) -> None:
    """Lightning logs each tenth update after the callbacks have seen it."""
    own = (*NER, "task.training.batch_size=3", "trainer.max_epochs=1", "logger=csv")
    succeed(run(tmp_path / "whole", *own))
    at_the_tenth = partial(signal_after, ResumeCheckpoint, "on_train_batch_start", 10, signal.SIGTERM)
    sentence = assert_told(run(tmp_path / "stopped", *own, prepare=at_the_tenth), signal.SIGTERM)
    assert "training is saved after 11 updates" in sentence
    succeed(run(tmp_path / "stopped", *own))
    whole, stopped = (read_curve(tmp_path / name) for name in ("whole", "stopped"))
    assert any(line["train/loss"] for line in whole)
    assert stopped == whole


def read_curve(outputs: Path) -> list[dict[str, str]]:
    (path,) = outputs.glob("runs/*/metrics.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_the_store_is_filled_keeps_the_shards_that_are_whole(
    tmp_path: Path, number: signal.Signals, tiny_bilm: Any, monkeypatch: Any
) -> None:
    tiny_bilm.save(tmp_path / "bilm")
    monkeypatch.setattr(store, "_SHARD_TOKENS", 200)
    own = ("task=ner", "elmo.placement=input", "trainer.max_epochs=1", "data.fraction=0.05")
    own += (f"bilm.path={tmp_path / 'bilm'}", "bilm.store.dtype=float32")
    succeed(run(tmp_path / "whole", *own))
    stopped = tmp_path / "stopped"
    sentence = assert_told(run(stopped, *own, prepare=partial(signal_after, Shards, "append", 3, number)), number)
    assert "what was finished before is kept" in sentence
    assert len(list(stopped.glob("layers/*/*.idx"))) == 3
    assert not list(stopped.glob("runs/*.lock"))
    succeed(run(stopped, *own))
    (row,), (whole,) = load(stopped / "rows"), load(tmp_path / "whole" / "rows")
    assert 0 < row["layers"]["read"] < whole["layers"]["computed"]
    assert row["layers"]["read"] + row["layers"]["computed"] == whole["layers"]["computed"]
    assert (row["scores"], row["weights"]) == (whole["scores"], whole["weights"])


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(("method", "n_calls"), [("write", 1), ("write", 4), ("write", -1), ("truncate", -1)])
def test_a_signal_while_the_weights_of_a_bilm_are_written_waits_until_the_file_is_whole(
    tmp_path: Path, tiny_bilm: Any, number: signal.Signals, method: str, n_calls: int
) -> None:
    """HDF5 calls back into Python, where the signal's exception would be raised."""
    real, calls = getattr(hdf5._DeferredErrors, method), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hdf5._DeferredErrors, method, lambda *values: calls.append(method) or real(*values))
        tiny_bilm.save(tmp_path / "whole")
    n_calls = n_calls if n_calls > 0 else len(calls)

    def begin() -> None:
        signal_after(hdf5._DeferredErrors, method, n_calls, number)
        run_command(lambda _: tiny_bilm.save(tmp_path / "stopped"), [])

    assert_told(Child(begin, tmp_path / "log.txt"), number)
    assert [path.name for path in (tmp_path / "stopped").iterdir()] == ["weights.hdf5"]
    whole, stopped = (tmp_path / name / "weights.hdf5" for name in ("whole", "stopped"))
    assert stopped.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("number", [signal.SIGUSR1, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_signal_while_a_run_writes_its_bilm_is_no_failure(tmp_path: Path, number: signal.Signals) -> None:
    succeed(run(tmp_path / "whole", *LM))
    stopped = tmp_path / "stopped"
    prepare = partial(signal_after, hdf5._DeferredErrors, "write", 5, number)
    assert_told(run(stopped, *LM, prepare=prepare), number)
    assert not list(stopped.glob("rows/*"))
    assert not list(stopped.glob("runs/*.lock"))
    succeed(run(stopped, *LM))
    (found, same), (expected, weights) = (outcome(tmp_path / name) for name in ("stopped", "whole"))
    assert found == expected
    assert all(torch.equal(same[name], weights[name]) for name in weights)
    for path in tmp_path.glob("whole/runs/*/bilm/*"):
        assert path.read_bytes() == (stopped / path.relative_to(tmp_path / "whole")).read_bytes()


def test_a_signal_while_layers_are_computed_for_a_file_does_not_wait_for_all_of_them(tmp_path: Path) -> None:
    def begin() -> None:
        run_command(lambda _: write_arrays(tmp_path / "layers.hdf5"), [])

    assert_told(Child(begin, tmp_path / "log.txt"), signal.SIGTERM)
    assert [path.name for path in tmp_path.iterdir()] == ["log.txt"]


def write_arrays(path: Path) -> None:
    with hdf5.new_file(path) as write:
        for n in range(1000):
            if n == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            write(str(n), torch.ones(2).numpy())
        raise AssertionError("it went on")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_sweep_and_not_only_its_cell(tmp_path: Path, number: signal.Signals) -> None:
    sweep = ("-m", *NER, "seed=1,2")
    assert_told(run(tmp_path, *sweep, prepare=when_saved(number)), number)
    assert len(list(tmp_path.glob("runs/*.partial"))) == 1
    succeed(run(tmp_path, *sweep))
    assert len(load(tmp_path / "rows")) == 2


@pytest.mark.parametrize(("number", "handled", "status"), [(signal.SIGUSR2, 17, 17), (signal.SIGTERM, None, 143)])
def test_the_handler_of_a_launcher_is_called_after_saving(
    tmp_path: Path, number: signal.Signals, handled: int | None, status: int
) -> None:
    """As submitit's: one requeues the job and ends the process, the other only says that it was there."""

    def handle(number: int, frame: Any) -> None:
        print("handed on:", number, *sorted(path.name for path in tmp_path.glob("runs/*/*")))
        if handled is not None:
            sys.exit(handled)

    def prepare() -> None:
        signal.signal(number, handle)
        when_saved(number)()

    child = run(tmp_path, "-m", *NER, "seed=1", prepare=prepare)
    assert child.wait(200) == status, child.output()
    assert f"{number.name}: training is saved after" in child.output()
    assert "Traceback" not in child.output()
    (line,) = (line for line in child.output().splitlines() if line.startswith("handed on: "))
    assert line.split()[2] == str(int(number))
    assert STATE in line
    assert not list(tmp_path.glob("runs/*.lock"))


def test_under_slurm_a_signal_requeues_nothing_and_no_run_starts_from_another_ones_state(tmp_path: Path) -> None:
    """Lightning would write ``hpc_ckpt_1.ckpt`` into the current folder, and read it there."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "scontrol").write_text(f"#!/bin/sh\ntouch {tmp_path / 'requeued'}\n")
    (tmp_path / "bin" / "scontrol").chmod(0o755)
    current = tmp_path / "current"
    current.mkdir()
    slurm = {"JOB_ID": "4711", "NTASKS": "1", "NNODES": "1", "JOB_NAME": "train", "NODELIST": "localhost"}

    def begin() -> None:
        os.environ.update({f"SLURM_{name}": value for name, value in slurm.items()})
        os.environ.update(SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_NODEID="0")
        os.environ["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        os.chdir(current)

    def interrupted() -> None:
        begin()
        when_saved(signal.SIGUSR1)()

    assert_told(run(tmp_path / "first", *NER, "seed=1", prepare=interrupted), signal.SIGUSR1)
    assert not list(current.iterdir())
    assert not (tmp_path / "requeued").exists()
    (state,) = (tmp_path / "first").glob(f"runs/*.partial/{STATE}")
    (current / "hpc_ckpt_1.ckpt").write_bytes(state.read_bytes())
    succeed(run(tmp_path / "second", *NER, "seed=2", prepare=begin))
    (row,) = load(tmp_path / "second" / "rows")
    assert row["training"]["resumed_after"] == []


SMALL_PROGRAM = """
import os, signal, sys, time
from elmo_tasks import interrupts
{before}
interrupts.install()
with interrupts.held("all is saved"):
    {event}
    deadline = time.monotonic() + 20
    while interrupts.received() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    print("still saving", flush=True)
    open(sys.argv[1], "w").write("saved")
print("went on")
"""


def test_under_nohup_a_closed_terminal_ends_nothing(tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    event = "os.kill(os.getpid(), signal.SIGHUP); time.sleep(0.1); os.kill(os.getpid(), signal.SIGUSR1)"
    program = SMALL_PROGRAM.format(before=before, event=event)
    command = [sys.executable, "-c", program, str(tmp_path / "saved")]
    ended = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (138, "still saving\n")
    assert ended.stderr == "SIGUSR1: all is saved; run the same command again to resume\n"


def test_when_the_terminal_closes_all_is_saved_though_nothing_can_be_printed(tmp_path: Path) -> None:
    program = SMALL_PROGRAM.format(before="", event="print('ready', flush=True)")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", program, str(tmp_path / "saved")])
    while b"ready" not in os.read(terminal, 1000):
        pass
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 129
    assert (tmp_path / "saved").read_text() == "saved"


STORED = ("task=ner", "elmo.placement=input", "trainer.max_epochs=1", "data.fraction=0.05", "bilm.store.dtype=float32")


@pytest.mark.parametrize("overrides", [STORED, pytest.param(LM, marks=pytest.mark.slow)], ids=["ner", "lm"])
def test_no_temporary_file_of_a_killed_process_survives_the_next_run(
    tmp_path: Path, overrides: tuple[str, ...], tiny_bilm: Any
) -> None:
    """Each start is killed a write later than the one before it, when its file is complete but not yet renamed."""
    tiny_bilm.save(tmp_path / "bilm")
    own = () if overrides == LM else (f"bilm.path={tmp_path / 'bilm'}",)
    outputs, seen = tmp_path / "outputs", set[str]()
    for n_writes in range(1, 40):
        child = run(outputs, *overrides, *own, prepare=partial(killed_at_sync, n_writes))
        status, left = child.wait(200), set(outputs.rglob("*.tmp"))
        if status == 0:
            break
        assert status == -signal.SIGKILL, child.output()
        files = {path.name for path in left if path.is_file()}
        assert len(files) <= 2, files  # a shard of the store has an index
        assert not files & seen
        seen |= files
    assert status == 0
    assert len(seen) > 3
    assert not left
    assert len([*outputs.glob("layers/*/*.bin")]) == len([*outputs.glob("layers/*/*.idx")])


def killed_at_sync(n_calls: int) -> None:
    """The process is killed when it has written so many files."""
    real, calls = os.fsync, []

    def sync(descriptor: int) -> None:
        real(descriptor)
        if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            calls.append(descriptor)
        if len(calls) == n_calls:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = sync


TABLE = Table(
    "A table",
    (Line("NER", (*NER, "trainer.max_epochs=8"), "ner"),),
    (Column("baseline", ("elmo.placement=none",)),),
    seeds=2,
)


@pytest.mark.slow
def test_a_signal_to_a_table_ends_its_runs_which_save_their_state(tmp_path: Path) -> None:
    """SIGTERM, then SIGINT, then to the end; its runs are processes with imports of their own."""

    def begin() -> None:
        own = [f"paths.outputs={tmp_path}", f"rows={tmp_path / 'rows'}"]
        run_command(make_command("table", TABLE), ["--run", "-j", "2", *SMALL, *own])

    for number in (signal.SIGTERM, signal.SIGINT):
        before = time.time()
        table = Child(begin, tmp_path / f"{number.name}.txt")
        wait_for(partial(_is_saved_since, tmp_path, before), table)
        table.signal(number)
        assert "the runs save their state" in assert_told(table, number)
        logs = [path.read_text() for path in (tmp_path / "logs").iterdir()]
        assert all("SIGTERM: " in log and "Traceback" not in log for log in logs)
        assert any("SIGTERM: training is saved after" in log for log in logs)
        assert not list(tmp_path.glob("runs/*.lock"))  # the runs have ended
        assert not list(tmp_path.glob("rows/*.json"))
    succeed(Child(begin, tmp_path / "last.txt"))
    rows = load(tmp_path / "rows")
    assert len(rows) == 2
    assert any(row["training"]["resumed_after"] for row in rows)


def _is_saved_since(folder: Path, seconds: float) -> bool:
    return any(path.stat().st_mtime > seconds for path in folder.glob(f"runs/*.partial/{STATE}"))


def wait_for(ready: Callable[[], bool], child: Child) -> None:
    deadline = time.monotonic() + 200
    while not ready():
        assert child.poll() is None, child.output()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_during_an_import_that_catches_every_exception_ends_the_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "catching.py").write_text(
        "import os, time\n"
        f"try:\n    os.kill(os.getpid(), {number:d})\n    time.sleep(5)\n"
        "except BaseException:\n    pass\n"
    )
    code = "from elmo_tasks import interrupts; interrupts.install(); import catching; print('went on')"
    environment = {**os.environ, "PYTHONPATH": f"{REPO}:{tmp_path}"}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == STATUS[number]
    assert ended.stderr == f"{number.name}: what was finished before is kept; run the same command again to resume\n"
    assert not ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("module", ["torch", "pytorch_lightning", "elmo_tasks.runs.run"])
def test_a_signal_during_the_imports_is_one_sentence(tmp_path: Path, number: signal.Signals, module: str) -> None:
    """``run.py`` as a user starts it; the signal comes when the import of a module begins."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}:\n            os.kill(os.getpid(), {number:d})\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    command = [sys.executable, "run.py", *NER, *SMALL, f"paths.outputs={tmp_path / 'outputs'}"]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{REPO}"}
    ended = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=200)
    assert ended.returncode == STATUS[number], ended.stderr
    assert ended.stderr == f"{number.name}: {interrupts.DEFAULT_MESSAGE}; run the same command again to resume\n"
    assert not list(tmp_path.glob("outputs/rows/*"))
