import importlib
import json
import os
import re
import shlex
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
from elmo_tasks.errors import UserError
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables import Column, Line, Table, command, jobs, make_command
from elmo_tasks.tables.command import execute, read_request
from elmo_tasks.tables.find_cell import find_cell
from elmo_tasks.tables.jobs import run_jobs
from elmo_tasks.tables.plan import Job, plan
from elmo_tasks.tables.settings import setting

REPO = Path(__file__).parents[2]
NER, NONE = "task=ner", "elmo.placement=none"
TABLE = Table("A table", (Line("NER", (NER,), members=2),), (Column("baseline", (NONE,)), Column("ELMo")), seeds=2)
TEST = Table("On test", TABLE.lines, (Column("ELMo"),), split="test", seeds=1)
ENSEMBLE = Table("An ensemble", TABLE.lines, (Column("ensemble", ensemble=True),), split="test")


def commands(tmp_path: Path, *tables: Table, more: tuple[str, ...] = (), capsys: Any) -> list[str]:
    """What --missing prints."""
    rows = [] if any(word.startswith("rows=") for word in more) else [f"rows={tmp_path / 'rows'}"]
    request = read_request([*rows, f"paths.outputs={tmp_path}", "--missing", *more])
    assert execute(tables, request) == 0
    printed = capsys.readouterr().out.splitlines()
    return [line.replace(f" paths.outputs={tmp_path}", "") for line in printed]


def test_an_empty_store_lacks_everything(tmp_path: Path, capsys: Any) -> None:
    common = "python run.py data=local task=ner"
    assert commands(tmp_path, TABLE, capsys=capsys) == [
        f"{common} elmo.placement=none data.root=DIR seed=1",
        f"{common} elmo.placement=none data.root=DIR seed=2",
        f"{common} data.root=DIR seed=1",
        f"{common} data.root=DIR seed=2",
    ]


def test_outside_a_clone_the_command_is_that_of_the_package(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    first, *_ = commands(tmp_path, TABLE, capsys=capsys)
    assert first.startswith("elmo-tasks run data=local task=ner ")


@pytest.mark.parametrize("what", ["--missing", "--run", "seeds=2"])
def test_a_task_that_no_table_has_is_refused(tmp_path: Path, what: str) -> None:
    request = read_request([f"rows={tmp_path}", "tasks=snli", what])
    with pytest.raises(UserError, match=r"^tasks=snli: no line of that task in: A table; On test$"):
        execute((TABLE, TEST), request)
    other = Table("Another", (Line("SNLI", ("task=snli",)),), (Column("ELMo"),))
    assert execute((TABLE, other), read_request([f"rows={tmp_path}", "tasks=snli", "--missing"])) == 0


def test_a_cell_with_its_rows_is_not_missing(tmp_path: Path, write: Any, capsys: Any) -> None:
    write(NER, NONE, seed=2)
    for seed in (1, 2):
        write(NER, seed=seed)
    assert commands(tmp_path, TABLE, capsys=capsys) == [
        "python run.py data=local task=ner elmo.placement=none data.root=DIR seed=1"
    ]
    write(NER, NONE, seed=1)
    assert commands(tmp_path, TABLE, capsys=capsys) == ["nothing is missing"]


def test_runs_of_weights_that_were_bundled_before_are_due_again_and_shown_until_then(
    tmp_path: Path, write: Any, capsys: Any
) -> None:
    before = {"digest": "before"}
    for seed in (1, 2):
        write(NER, NONE, seed=seed)
        write(NER, seed=seed, dev=80.0, test=80.0, bilm=before)
    common = "python run.py data=local task=ner data.root=DIR"
    assert commands(tmp_path, TABLE, capsys=capsys) == [f"{common} seed=1", f"{common} seed=2"]
    cell = find_cell(read_rows([tmp_path / "rows"]), setting(("data=local", NER)), split="dev", seeds=(1, 2))
    assert cell.values == {1: 80.0, 2: 80.0}
    write(NER, seed=2, dev=81.0)
    assert commands(tmp_path, TABLE, capsys=capsys) == [f"{common} seed=1"]


def test_an_ensemble_of_weights_that_were_bundled_before_is_due_again_with_its_members(
    tmp_path: Path, write: Any, capsys: Any
) -> None:
    before = {"digest": "before"}
    for seed in (1, 2):
        write(NER, seed=seed, bilm=before, run_id=f"r{seed}")
        (tmp_path / "runs" / f"r{seed}").mkdir(parents=True)
        (tmp_path / "runs" / f"r{seed}" / "model.safetensors").touch()
    write(NER, test=85.0, members={1: "r1", 2: "r2"}, bilm=before)
    common = "python run.py data=local task=ner data.root=DIR"
    members = [f"{common} seed=1", f"{common} seed=2"]
    assert commands(tmp_path, ENSEMBLE, capsys=capsys) == [*members, f"{common} 'ensemble=[1,2]' test=true"]


def test_a_run_that_two_tables_need_is_one_command_and_opens_the_test_set_if_one_of_them_does(
    tmp_path: Path, capsys: Any
) -> None:
    expected = ["seed=1 test=true", "seed=2"]
    for tables in ((TEST, TABLE), (TABLE, TEST)):
        found = [c for c in commands(tmp_path, *tables, capsys=capsys) if NONE not in c]
        assert [command.partition("data.root=DIR ")[2] for command in found] == expected


def test_settings_that_differ_in_the_names_of_files_alone_are_all_asked_for(
    tmp_path: Path, capsys: Any, tiny_bilm: Any
) -> None:
    names = [f"bilm.path={tmp_path / name}" for name in ("a", "b")]
    for name in ("a", "b"):
        tiny_bilm.save(tmp_path / name)
    lines = tuple(Line(name, (NER, f"task.files.train={name}")) for name in ("x", "y"))
    table = Table("Files", lines, tuple(Column(name, (name,)) for name in names), seeds=1)
    found = commands(tmp_path, table, more=("-j", "2"), capsys=capsys)
    asked = [(line, name) for line in ("train=x", "train=y") for name in names]
    assert [any(line in command and f"{name} " in command for command in found) for line, name in asked] == [True] * 4
    assert len(found) == 4


def test_rows_go_into_a_folder_of_any_name(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "결과 (1)"
    (found,) = commands(tmp_path, TEST, more=(f"rows={folder}",), capsys=capsys)
    assert shlex.split(found)[-1] == f"results.dir='{folder}'"


def test_rows_go_where_they_are_read(tmp_path: Path, capsys: Any) -> None:
    folder = tmp_path / "other rows"
    found = commands(tmp_path, TEST, more=(f"rows={folder}",), capsys=capsys)
    assert found == [f"python run.py data=local task=ner data.root=DIR seed=1 test=true 'results.dir={folder}'"]


def test_runs_on_wandb_have_the_table_s_name_as_a_tag_and_are_the_same_runs(tmp_path: Path, capsys: Any) -> None:
    words = [f"rows={tmp_path}"]
    for more, tag in ([], ["'logger.tags=[table9]'"]), (["logger.tags=[mine]"], []):
        request = read_request([*words, "--missing", "seeds=1", "logger=wandb", *more], "table9")
        assert execute((TEST,), request) == 0
        printed = capsys.readouterr().out.split()
        assert [word for word in printed if word.startswith("'logger.tags=[table9")] == tag
    plain, tagged = (setting(("data=local", NER, *more)) for more in ((), ("logger=wandb", "logger.tags=[table9]")))
    assert plain.key == tagged.key


def test_a_folder_of_rows_that_is_not_there_is_told_before_a_table_of_nothing(tmp_path: Path) -> None:
    nowhere = f"rows={tmp_path / 'nowhere'}"
    with pytest.raises(UserError, match=rf"^{nowhere}: no such folder$"):
        read_request([nowhere])
    assert read_request([nowhere, "--missing"]).missing  # runs will write into it


def test_an_ensemble_comes_after_its_members(tmp_path: Path, capsys: Any) -> None:
    found = commands(tmp_path, ENSEMBLE, TEST, capsys=capsys)
    common = "python run.py data=local task=ner data.root=DIR"
    assert found == [f"{common} seed=1 test=true", f"{common} seed=2", f"{common} 'ensemble=[1,2]' test=true"]


def test_members_whose_weights_are_gone_are_run_again(tmp_path: Path, write: Any, capsys: Any) -> None:
    ids = [json.loads(write(NER, seed=seed).read_text())["run_id"] for seed in (1, 2)]
    (tmp_path / "runs" / ids[0]).mkdir(parents=True)
    (tmp_path / "runs" / ids[0] / "model.safetensors").touch()
    found = [command.partition("data.root=DIR ")[2] for command in commands(tmp_path, ENSEMBLE, capsys=capsys)]
    assert found == ["seed=2 force=true", "'ensemble=[1,2]' test=true"]


def test_members_whose_rows_lie_elsewhere_are_run_here(tmp_path: Path, write: Any, capsys: Any) -> None:
    for seed in (1, 2):
        write(NER, seed=seed)
    folders = f"rows={tmp_path / 'rows'},{tmp_path / 'mine'}"
    found = commands(tmp_path, ENSEMBLE, more=(folders,), capsys=capsys)
    assert ["force" in command for command in found] == [False] * 3


def test_a_launcher_gets_the_seeds_of_a_setting_as_one_sweep(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher", reason="needs the extra sweep")
    found = commands(tmp_path, TABLE, more=("hydra/launcher=joblib",), capsys=capsys)
    common = "python run.py -m hydra/launcher=joblib data=local task=ner"
    assert found == [f"{common} elmo.placement=none data.root=DIR seed=1,2", f"{common} data.root=DIR seed=1,2"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["elmo.speed=1"], "unknown key 'elmo.speed'"),
        (["seeds=0"], "seeds must be a whole number of at least 1, found 0"),
        (["seeds=x"], "seeds must be a whole number of at least 1, found x"),
        (["tasks=ner,chess"], "unknown task 'chess'; expected one of coref, lm, ner"),
        (["seed=1"], "seed=1: a table sets seed itself"),
        (["task=ner"], "task=ner: a table sets task itself"),
        (["results.dir=x"], "a table sets results.dir itself"),
        (["++seed=7"], r"^\+\+seed=7: a table sets seed itself"),
        (["++ensemble=[1,2]"], "a table sets ensemble itself"),
        (["seeds=1", "seeds=3"], "^seeds=1 and seeds=3: seeds is set twice"),
        (["fraction=0.1", "data.fraction=0.5"], "data.fraction=0.1 and data.fraction=0.5: data.fraction is set twice"),
        (["hydra/launcher=nosuch"], "^hydra/launcher=nosuch: unknown choice; expected one of basic"),
        (["hydra.launcher.speed=1"], "^unknown key 'hydra.launcher.speed'"),
        (["hello"], "hello: expected KEY=VALUE"),
        (["--run", "-j", "0"], "-j must be a whole number of at least 1, found 0"),
        (["--walk"], "unrecognized arguments: --walk"),
        (["--run", "--missing"], "not allowed with argument"),
    ],
)
def test_a_wrong_command_line_ends_in_a_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_request(words)


@pytest.mark.parametrize(
    ("name", "word", "key"),
    [
        ("figure1.SHARE", "fraction=0.1", "data.fraction"),
        ("figure1.SHARE", "++data.fraction=0.1", "data.fraction"),
        ("figure1.EPOCHS", "elmo.placement=both", "elmo.placement"),
        ("table2.TABLE", "elmo.mix=last", "elmo.mix"),
        ("table2.TABLE", "elmo=none", "elmo.*"),
        ("claims.CLAIMS", "data.fraction=1", "data.fraction"),
    ],
)
def test_what_a_declaration_sets_cannot_be_set_beside_it(tmp_path: Path, name: str, word: str, key: str) -> None:
    module, _, constant = name.partition(".")
    declared = getattr(importlib.import_module(f"experiments.{module}"), constant)
    shown = "data.fraction=0.1" if word == "fraction=0.1" else word
    with pytest.raises(UserError, match=rf"^{re.escape(f'{shown}: {declared.title} sets {key} itself')}"):
        execute((declared,), read_request([f"rows={tmp_path}", word]))


def test_what_a_declaration_leaves_open_can_be_set_for_all_cells(tmp_path: Path, capsys: Any) -> None:
    from experiments import ensembles, table3

    words = [f"rows={tmp_path}", "fraction=0.1", "scale=paper", "tasks=snli", "--missing"]
    assert execute((table3.TABLE,), read_request(words)) == 0
    assert execute((ensembles.TABLE,), read_request([f"rows={tmp_path}", "elmo=none", "tasks=snli", "--missing"])) == 0


def test_without_a_folder_of_data_nothing_is_run(tmp_path: Path) -> None:
    request = read_request([f"rows={tmp_path}", "--run"])
    with pytest.raises(UserError, match=r"^data\.root is not set"):
        execute((TABLE,), request)


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
    return Job(setting(("data=local", NER)), seeds, ensemble=ensemble)


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
        "from elmo_tasks.tables import jobs\n"
        "interrupts.install()\n"
        f"jobs.PROGRAM = (sys.executable, {str(stand_in / 'stand_in.py')!r})\n"
        "from test_plan import extra, job\n"
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
    from elmo_tasks.tables.evaluate import evaluate
    from elmo_tasks.tables.measure import Choice

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
