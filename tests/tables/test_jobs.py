import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import interrupts
from elmo_tasks.command_line import run_command
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables import Column, Line, Table, command, make_command
from elmo_tasks.tables import run_jobs as jobs
from elmo_tasks.tables.command import execute, read_request
from elmo_tasks.tables.list_jobs import Job, plan
from elmo_tasks.tables.run_jobs import run_jobs
from elmo_tasks.tables.wanted import compose_wanted

REPO = Path(__file__).parents[2]
NER, NONE = "task=ner", "elmo.placement=none"
TABLE = Table("A table", (Line("NER", (NER,), members=2),), (Column("baseline", (NONE,)), Column("ELMo")), seeds=2)

STAND_IN = """
import json, os, sys, time
from pathlib import Path

words = dict(word.split("=", 1) for word in sys.argv[1:])
here = Path(words["paths.outputs"])
with (here / "started").open("a") as file:
    file.write(f"{os.getpid()} {words.get('seed', 'ensemble')} {time.monotonic()}\\n")
while (here / "wait").exists() and words.get("seed") != "1":
    time.sleep(0.02)
time.sleep(float((here / "seconds").read_text()) if "seed" in words else 0)
if words.get("seed") == (here / "fails").read_text():
    sys.exit("error: this seed is unlucky")
row = json.loads((here / "row.json").read_text())
row["seed"] = row["config"]["seed"] = int(words.get("seed", 0))
row["run_id"] = f"ner-s{row['seed']}"
path = Path(words["results.dir"]) / f"{row['run_id']}.json"
path.write_text(json.dumps(row))
with (here / "ended").open("a") as file:
    file.write(f"{words.get('seed', 'ensemble')} {time.monotonic()}\\n")
"""


@pytest.fixture
def stand_in(tmp_path: Path, write: Any, monkeypatch: Any) -> Path:
    """A program in the place of run.py that writes a row at once, or waits, or fails; its folder."""
    write(NER, test=1.0).rename(tmp_path / "row.json")
    (tmp_path / "fails").write_text("")
    (tmp_path / "seconds").write_text("0")
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setattr(jobs, "PROGRAM", (sys.executable, str(tmp_path / "stand_in.py")))
    return tmp_path


def job(*seeds: int, ensemble: bool = False) -> Job:
    return Job(compose_wanted(("data=local", NER)), seeds, ensemble=ensemble)


def extra(folder: Path) -> tuple[str, ...]:
    return (f"paths.outputs={folder}", f"results.dir={folder / 'rows'}")


def test_one_job_that_fails_does_not_stop_the_others_and_is_reported(stand_in: Path, capsys: Any) -> None:
    (stand_in / "fails").write_text("2")
    todo = [job(1), job(2), job(3)]
    failed = run_jobs(todo, at_a_time=2, logs=stand_in / "logs", extra=extra(stand_in), launcher=())
    assert failed == [todo[1]]
    assert sorted(path.name for path in (stand_in / "rows").iterdir()) == ["ner-s1.json", "ner-s3.json"]
    printed = capsys.readouterr().out
    assert "error: this seed is unlucky (see" in printed
    assert "[3/3]" in printed


def test_ensembles_start_when_all_members_have_ended(stand_in: Path) -> None:
    (stand_in / "seconds").write_text("0.5")
    todo = [job(1), job(2), job(1, 2, ensemble=True)]
    assert run_jobs(todo, at_a_time=3, logs=stand_in / "logs", extra=extra(stand_in), launcher=()) == []
    started = {line.split()[1]: float(line.split()[2]) for line in (stand_in / "started").read_text().splitlines()}
    ended = {line.split()[0]: float(line.split()[1]) for line in (stand_in / "ended").read_text().splitlines()}
    assert started["ensemble"] > max(ended["1"], ended["2"])


@pytest.fixture
def _handlers_are_put_back(monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setattr(interrupts._State, "installed", False)
    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handlers_are_put_back")
def test_ctrl_c_ends_in_a_sentence(monkeypatch: Any, capsys: Any) -> None:
    def interrupt(*_: Any) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
        return 0

    monkeypatch.setattr(command, "execute", interrupt)
    with pytest.raises(SystemExit) as ended:
        run_command(make_command("table2", TABLE), ["--run"])
    assert ended.value.code == 130
    said = "SIGINT: what was finished before is kept; run the same command again to resume\n"
    assert capsys.readouterr() == ("", said)


def test_threads_are_shared_among_processes_here_but_not_on_a_cluster(tmp_path: Path, monkeypatch: Any) -> None:
    given: list[tuple[str, ...]] = []

    def pretend(jobs: Any, *, extra: tuple[str, ...], **_: Any) -> list[Any]:
        given.append(extra)
        return []

    monkeypatch.setattr(command, "run_jobs", pretend)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    for more in ([], ["hydra/launcher=basic"]):
        words = [f"rows={tmp_path}", f"paths.outputs={tmp_path}", "data=sample", "--run", "-j", "2", *more]
        assert execute((TABLE,), read_request(words)) == 1
    assert ["trainer.threads=4" in extra for extra in given] == [True, False]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_killed_ends_its_runs_and_resumes_them(stand_in: Path, number: int) -> None:
    (stand_in / "wait").touch()
    code = (
        "import sys; from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from elmo_tasks import interrupts\n"
        "from elmo_tasks.tables import run_jobs as jobs\n"
        "interrupts.install()\n"
        f"jobs.PROGRAM = (sys.executable, {str(stand_in / 'stand_in.py')!r})\n"
        "from test_jobs import extra, job\n"
        f"folder = Path({str(stand_in)!r})\n"
        "jobs.run_jobs([job(1), job(2), job(3)], at_a_time=2, logs=folder / 'logs', extra=extra(folder), launcher=())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # background jobs of a shell ignore Ctrl-C
    )
    started, deadline = stand_in / "started", time.monotonic() + 60
    while not started.exists() or len(started.read_text().splitlines()) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number
    for line in started.read_text().splitlines():
        with pytest.raises(ProcessLookupError):
            os.kill(int(line.split()[0]), 0)
    assert [path.name for path in (stand_in / "rows").iterdir()] == ["ner-s1.json"]
    (stand_in / "wait").unlink()
    cells = [cell for one in _filled(stand_in) for cell in one.cells]
    left = plan(cells, read_rows([stand_in / "rows"]), stand_in / "rows")
    assert [one.seeds for one in left] == [(2,), (3,)]
    assert run_jobs(left, at_a_time=2, logs=stand_in / "logs", extra=extra(stand_in), launcher=()) == []
    assert all(not cell.missing for one in _filled(stand_in) for cell in one.cells)


def _filled(folder: Path) -> list[Any]:
    from elmo_tasks.tables.collect import Choice
    from elmo_tasks.tables.evaluate import evaluate

    table = Table("t", (Line("NER", (NER,)),), (Column("ELMo"),), seeds=3)
    return [evaluate(table, read_rows([folder / "rows"]), Choice(("data=local",)))]


@pytest.mark.slow
def test_the_seeds_of_a_setting_are_run_through_a_launcher(tmp_path: Path, capfd: Any) -> None:
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="needs the extra slurm")
    table = Table("SST-5", (Line("SST-5", ("task=sst5",)),), (Column("baseline", (NONE,)),), seeds=2)
    words = [f"rows={tmp_path / 'rows'}", f"paths.outputs={tmp_path}", "--run", "data=sample", "fraction=0.1"]
    words += ["words=random", "trainer.max_epochs=1", "trainer.max_steps=2", "trainer.accelerator=cpu", "logger=none"]
    words += ["hydra/launcher=submitit_local", "hydra.launcher.cpus_per_task=1"]
    assert execute((table,), read_request(words)) == 0
    assert "1 to run" in capfd.readouterr().out
    assert len(list((tmp_path / "rows").glob("*.json"))) == 2


@pytest.mark.slow
def test_a_table_is_run_on_the_sample_and_a_second_time_does_nothing(tmp_path: Path, capfd: Any) -> None:
    table = Table("SST-5", (Line("SST-5", ("task=sst5",)),), (Column("baseline", (NONE,)),), seeds=1)
    words = [f"rows={tmp_path / 'rows'}", f"paths.outputs={tmp_path}", "--run", "data=sample", "fraction=0.1"]
    words += ["words=random", "trainer.max_epochs=1", "trainer.max_steps=2", "trainer.accelerator=cpu", "logger=none"]
    assert execute((table,), read_request(words)) == 0
    first = capfd.readouterr().out
    assert "1 to run, 1 at a time" in first
    assert "1 done, 0 failed" in first
    assert " (1), still rising [" in first
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert execute((table,), read_request(words)) == 0
    second = capfd.readouterr().out
    assert second.startswith("nothing is missing")
    assert first.endswith(second.removeprefix("nothing is missing\n\n"))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_log_is_not_written_through_a_link(stand_in: Path) -> None:
    logs = stand_in / "logs"
    logs.mkdir()
    (stand_in / "mine").write_text("mine")
    log = logs / f"{job(1).name}.log"
    log.symlink_to(stand_in / "mine")
    assert run_jobs([job(1)], at_a_time=1, logs=logs, extra=extra(stand_in), launcher=()) == []
    assert (stand_in / "mine").read_text() == "mine"
    assert not log.is_symlink()
