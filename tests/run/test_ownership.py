"""One run, one owner; and whatever fails or is killed, a finished result stays whole."""

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kills import Killed, killed
from rows_as_json import load

from elmo_tasks import lock
from elmo_tasks.errors import UserError
from elmo_tasks.files import sha256
from elmo_tasks.lock import owned
from elmo_tasks.rows import io
from elmo_tasks.rows.schema import Row
from elmo_tasks.runs import run as train
from elmo_tasks.runs import supervised
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.training.state_file import TensorsAndJson

SST = ("task=sst5", "elmo.placement=none", "trainer.max_epochs=1", "data.fraction=0.05")


def run_folder(tmp_path: Path) -> RunFolder:
    """The folder of the only finished run."""
    (row,) = (tmp_path / "outputs" / "rows").glob("*.json")
    return RunFolder(tmp_path / "outputs", tmp_path / "outputs" / "rows", row.stem)


def assert_whole(folder: RunFolder) -> io.AnyRow:
    """The row is finished, and its weights are those that it names."""
    row = io.finished_row(folder.row)
    assert row is not None
    assert sha256(folder.check_weights(row)) == row.weights
    return row


def test_a_forced_rerun_that_is_killed_leaves_the_finished_result_and_is_resumed(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    train.run(composed(*SST, "trainer.max_epochs=2"))
    folder = run_folder(tmp_path)
    before = assert_whole(folder)
    real = TensorsAndJson.save_checkpoint
    with monkeypatch.context() as patch:
        patch.setattr(TensorsAndJson, "save_checkpoint", lambda *a, **k: (real(*a, **k), killed()))
        with pytest.raises(Killed):
            train.run(composed(*SST, "trainer.max_epochs=2", "force=true"))
    assert (folder.partial / "model.safetensors").exists()
    assert assert_whole(folder) == before
    train.run(composed(*SST, "trainer.max_epochs=2", "force=true"))
    after = assert_whole(folder)
    assert after.weights == before.weights  # the same run
    assert after.created != before.created or after.training.resumed_after
    assert not folder.partial.exists()


def test_a_forced_rerun_that_fails_leaves_the_finished_result(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    train.run(composed(*SST))
    folder = run_folder(tmp_path)
    before = assert_whole(folder)
    with pytest.raises(UserError, match=r"trainer\.accelerator=gpu.*not possible on this machine"):
        train.run(composed(*SST, "force=true", "trainer.accelerator=gpu"))
    monkeypatch.setattr(supervised, "score", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train.run(composed(*SST, "force=true"))
    assert assert_whole(folder) == before


def test_a_full_disk_is_named_before_a_run_begins(tmp_path: Path, monkeypatch: Any) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lock, "_about_this_process", full)
    with (
        pytest.raises(
            UserError, match=r"/a\.lock: cannot be written \(No space left on device\); choose another folder"
        ),
        owned(tmp_path / "a.lock", wait=False),
    ):
        raise AssertionError
    assert not (tmp_path / "a.lock").exists()


def test_a_finished_run_whose_predictions_cannot_be_copied_is_published_by_the_next_call(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    srl = ("task=srl", "elmo.placement=none", "trainer.max_epochs=1", "data.fraction=0.05")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", full)
        with pytest.raises(
            UserError, match=r"cannot be written \(No space left .*\); the run has finished, so make room"
        ):
            train.run(composed(*srl))
    monkeypatch.setattr(supervised, "fit", killed)
    train.run(composed(*srl, f"results.dir={tmp_path / 'elsewhere'}"))
    (row,) = (tmp_path / "elsewhere").glob("*.json")
    assert [*row.with_suffix("").rglob("*.*")]


STEPS = {
    "shutil.rmtree": (shutil, "rmtree"),
    "Path.rename": (Path, "rename"),
    "the row": (io, "write_json"),
    "Path.unlink": (Path, "unlink"),
}


@pytest.mark.parametrize("step", range(12))
def test_a_kill_at_any_step_of_a_publication_leaves_the_old_result_or_the_new_one(
    composed: Any, tmp_path: Path, monkeypatch: Any, step: int
) -> None:
    train.run(composed(*SST))
    folder = run_folder(tmp_path)
    old = assert_whole(folder)
    shutil.copytree(folder.final, folder.partial)
    with (folder.partial / "model.safetensors").open("ab") as file:
        file.write(b" ")  # other weights
    content = io.to_json(old) | {"weights": sha256(folder.partial / "model.safetensors")}
    new = io.from_text(json.dumps(content), "new")
    calls = []

    def counted(real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls.append(real)
            if len(calls) == step + 1:
                raise Killed
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for owner, name in STEPS.values():
            patch.setattr(owner, name, counted(getattr(owner, name)))
        try:
            folder.publish(new, made=True)
        except Killed:
            assert len(calls) == step + 1
    folder.settle()
    found = assert_whole(folder)
    assert found in (old, new)
    if step > 0:  # the row was written beside the weights: the run had finished
        assert found == new
    folder.settle()
    assert assert_whole(folder) == found


def test_a_test_set_is_scored_with_the_saved_weights(composed: Any, tmp_path: Path, monkeypatch: Any) -> None:
    train.run(composed(*SST, "trainer.threads=1"))
    folder = run_folder(tmp_path)
    before = assert_whole(folder)
    monkeypatch.setattr(supervised, "fit", killed)
    monkeypatch.setattr(train, "provenance", lambda: {"commit": "later", "dirty": True, "versions": {"torch": "9"}})
    train.run(composed(*SST, "test=true"))
    after = assert_whole(folder)
    assert after.config == before.config | {"test": True}  # that of the training, as its threads are
    assert (after.commit, after.dirty, after.versions) == (before.commit, before.dirty, before.versions)
    assert set(after.scores) == {"dev", "test"}
    assert (after.weights, after.training, after.scores["dev"]) == (
        before.weights,
        before.training,
        before.scores["dev"],
    )
    monkeypatch.undo()
    train.run(composed(*SST, "test=true", "force=true"))
    assert assert_whole(folder).scores == after.scores


def test_weights_of_another_run_are_not_scored(composed: Any, tmp_path: Path) -> None:
    train.run(composed(*SST))
    folder = run_folder(tmp_path)
    with (folder.final / "model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(UserError, match=r"model\.safetensors: not the weights that .*\.json was measured with"):
        train.run(composed(*SST, "test=true"))


HOLDER = """
import sys, time
from pathlib import Path
from elmo_tasks.lock import owned
with owned(Path(sys.argv[1]), wait=False):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A lock that another process holds."""
    path = tmp_path / "run.lock"
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield path, process
    process.kill()
    process.wait()


def test_a_second_owner_is_told_who_the_first_is(held: Any) -> None:
    path, process = held
    with (
        pytest.raises(
            UserError, match=rf"^run: this run is already being made by process {process.pid} on \S+, since \S+; "
        ),
        owned(path, wait=False),
    ):
        pass


def test_a_slurm_job_is_named_as_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    environment = {**os.environ, "SLURM_JOB_ID": "4711"}
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with (
            pytest.raises(UserError, match=rf"already being made by Slurm job 4711, process {process.pid} on "),
            owned(path, wait=False),
        ):
            pass
        process.kill()


@pytest.mark.parametrize(
    "content", ["", "[", "{}", '{"host": 1}', "[" * 100_000, '{"host": "a", "pid": 1, "since": null}']
)
def test_an_owner_that_has_not_said_who_it_is_is_another_process(held: Any, content: str) -> None:
    path, _ = held
    path.write_text(content)
    with (
        pytest.raises(UserError, match=r"^run: this run is already being made by another process; "),
        owned(path, wait=False),
    ):
        pass


def test_the_locks_work_between_forked_processes_and_are_not_inherited(tmp_path: Path) -> None:
    """A child, such as a worker that loads data, neither holds its parent's lock nor loses it by ending."""
    path = tmp_path / "run.lock"
    with owned(path, wait=False):
        pid = os.fork()
        if pid == 0:
            os.closerange(3, 100)
            os._exit(0)
        os.waitpid(pid, 0)
        program = "import sys; from pathlib import Path; from elmo_tasks.lock import owned\n"
        program += "with owned(Path(sys.argv[1]), wait=False): pass"
        second = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
        assert f"this run is already being made by process {os.getpid()}" in second.stderr


def test_the_lock_of_a_killed_process_is_free(held: Any) -> None:
    path, process = held
    process.kill()
    process.wait()
    assert path.exists()
    with owned(path, wait=False):
        pass
    assert not path.exists()


def test_a_second_owner_can_wait(held: Any, capsys: Any) -> None:
    path, process = held
    began = time.monotonic()
    subprocess.Popen([sys.executable, "-c", f"import os, time; time.sleep(1.5); os.kill({process.pid}, 9)"])
    with owned(path, wait=True):
        assert time.monotonic() - began > 1
    assert f"run: waiting for process {process.pid}" in capsys.readouterr().err


def test_a_run_that_another_process_makes_is_refused_before_anything_is_trained(
    composed: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    train.run(composed(*SST))
    folder = run_folder(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(folder.lock)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    monkeypatch.setattr(supervised, "fit", killed)
    with pytest.raises(UserError, match=rf"this run is already being made by process {process.pid}"):
        train.run(composed(*SST, "force=true"))
    process.kill()
    process.wait()


@pytest.mark.parametrize("place", ["outputs", "outputs/runs"])
def test_outputs_that_cannot_be_written_are_one_sentence(composed: Any, tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")
    with pytest.raises(UserError, match=r"cannot be written|Not a directory"):
        train.run(composed(*SST, f"results.dir={tmp_path / 'rows'}"))


def test_a_full_disk_is_one_sentence(composed: Any, tmp_path: Path, limited: Any) -> None:
    with limited(2_000), pytest.raises(UserError, match=r"cannot be written|File too large"):
        train.run(composed(*SST, "logger=csv"))
    assert not load(tmp_path / "outputs" / "rows")


def test_predictions_of_earlier_weights_do_not_stay(composed: Any, tmp_path: Path) -> None:
    """``test=true``, then ``force=true`` without it: the row has no test score, so it shows no test predictions."""
    train.run(composed(*SST))
    folder = run_folder(tmp_path)
    row = io.read_row(folder.row)
    assert isinstance(row, Row)
    for splits in (("dev", "test"), ("dev",)):
        folder.partial.mkdir()
        for split in splits:
            folder.write_predictions(folder.partial, split, {"predictions.json": f"{len(splits)} splits"})
        folder.publish(row, made=True)
    shown = folder.row.with_suffix("")
    assert [path.name for path in shown.iterdir()] == ["dev"]
    assert (shown / "dev" / "predictions.json").read_text() == "1 splits"


def test_a_lock_whose_file_the_last_owner_has_removed_is_taken_anew(tmp_path: Path, monkeypatch: Any) -> None:
    path, real = tmp_path / "run.lock", lock._open
    waited_for = [real(path)]
    path.unlink()  # as an owner does when it has ended
    monkeypatch.setattr(lock, "_open", lambda path: waited_for.pop() if waited_for else real(path))
    with owned(path, wait=True):
        assert json.loads(path.read_text())["pid"] == os.getpid()  # what another process will find
