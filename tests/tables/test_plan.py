import importlib
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.rows.collection import read_rows
from elmo_tasks.tables import Column, Line, Table
from elmo_tasks.tables.collect import find_cell
from elmo_tasks.tables.command import execute, read_request
from elmo_tasks.tables.wanted import compose_wanted

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
    cell = find_cell(read_rows([tmp_path / "rows"]), compose_wanted(("data=local", NER)), split="dev", seeds=(1, 2))
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
    plain, tagged = (
        compose_wanted(("data=local", NER, *more)) for more in ((), ("logger=wandb", "logger.tags=[table9]"))
    )
    assert plain.key == tagged.key


def test_a_folder_of_rows_that_is_not_there_is_told_before_a_table_of_nothing(tmp_path: Path) -> None:
    nowhere = f"rows={tmp_path / 'nowhere'}"
    with pytest.raises(UserError, match=rf"^{nowhere}: no such folder$"):
        read_request([nowhere])
    assert read_request([nowhere, "--missing"]).given.missing  # runs will write into it


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
        (["--missing", "--html", "x.html"], "--missing prints commands and writes no table"),
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
