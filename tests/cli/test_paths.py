"""Paths on the command line are taken as they are written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from elmo_tasks.config.overrides import with_quoted_paths
from elmo_tasks.places import BUNDLED, CONF, expand_home

REPO = Path(__file__).parents[2]
KEYS = ["data.root", "bilm.path", "words.path", "paths.outputs", "results.dir", "bilm.store.dir", "task.files.train"]
PATHS = [
    "데이터",
    "a/epoch=1",
    "(a) b",
    "a#b",
    "a|b",
    "naïve",
    "a:b",
    "x[1]",
    "{a}",
    "~x",
    "a'b",
    'a"b',
    "a b",
    "=",
    "a\\b",
]
PATHS += ["plain", "a-b/c.d_e", "/x/y%z", "@x", "a+b", "a*b?", "!x", "a&b", "x;y", "日本/中国.txt", "🙂"]


def composed(*overrides: str):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", with_quoted_paths(["task=ner", "data=local", "bilm=mini", *overrides]))


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_taken_as_it_is(path: str) -> None:
    cfg = composed(*(f"{key}={path}" for key in KEYS))
    for key in KEYS:
        found = cfg
        for part in key.split("."):
            found = found[part]
        assert found == path, key


def test_what_hydra_reads_stays_as_it_is() -> None:
    kept = ["data.root=a", "data.root=a,b", "bilm.path=null", "data.root='a b'", 'words.path="x=y"', "seed=1,2", "-m"]
    kept += ["data.root=${oc.env:HOME}", "task.optimizer.lr=1e-3", "words=random", "~experiment", "elmo.mix=a(b"]
    assert with_quoted_paths(kept) == kept


def test_commas_separate_the_values_of_a_sweep() -> None:
    assert with_quoted_paths(["data.root=데이터,b,c=d"]) == ['data.root="데이터",b,"c=d"']


def test_a_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of=one")
    assert with_quoted_paths(["data.root=~/x,~", "results.dir=~"]) == [
        'data.root="/home/of=one/x","/home/of=one"',
        'results.dir="/home/of=one"',
    ]
    assert [expand_home(path) for path in ("~/x", "~", "~x", "x/~", "")] == [
        "/home/of=one/x",
        "/home/of=one",
        "~x",
        "x/~",
        "",
    ]


def elmo_tasks(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = f"from elmo_tasks.cli.main import main; main({[*arguments]!r})"
    environment = os.environ | {"PYTHONPATH": str(REPO), "HOME": str(folder / "h"), "ELMO_TASKS_OUTPUTS": "~/out=1"}
    return subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_run_reads_and_writes_where_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "데이터 (1)").symlink_to(BUNDLED / "sample")
    (tmp_path / "epoch=1").symlink_to(BUNDLED / "bilm" / "mini")
    small = ["words=random", "data.fraction=0.05", "trainer.max_steps=1", "trainer.progress=false", "logger=none"]
    places = ["data=local", "data.root=데이터 (1)", "bilm.path=epoch=1"]
    done = elmo_tasks(tmp_path, "run", "task=ner", *small, *places)
    assert done.returncode == 0, done.stderr
    assert len([*(tmp_path / "h" / "out=1" / "rows").glob("*.json")]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch=1", "h", "데이터 (1)"]
    listed = elmo_tasks(tmp_path, "table", "table1", "data.root=데이터 (1)", "--missing")
    assert """'data.root="데이터 (1)"'""" in listed.stdout
