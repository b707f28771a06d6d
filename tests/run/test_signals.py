"""SIGTERM and Ctrl-C: the state is saved, a sentence says how to go on, and the status is that of the signal.

Most runs here are forked from the test's process, which has imported everything, and send the signal to themselves at
a step that is the same each time.
"""

import csv
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from attack.children import Child
from rows_as_json import load
from safetensors.torch import load_file

from elmo_tasks import interrupts
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
STATUS = {signal.SIGTERM: 143, signal.SIGINT: 130}
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
def test_a_signal_ends_a_sweep_and_not_only_its_cell(tmp_path: Path, number: signal.Signals) -> None:
    sweep = ("-m", *NER, "seed=1,2")
    assert_told(run(tmp_path, *sweep, prepare=when_saved(number)), number)
    assert len(list(tmp_path.glob("runs/*.partial"))) == 1
    succeed(run(tmp_path, *sweep))
    assert len(load(tmp_path / "rows")) == 2


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

    for number in SIGNALS:
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
