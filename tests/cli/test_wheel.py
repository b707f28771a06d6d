"""The wheel alone, without the repository, in an empty folder."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
BESIDES = ("outputs", "__pycache__", "*.egg-info", ".git", "build")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    shutil.copytree(REPO, copy, ignore=shutil.ignore_patterns(*BESIDES, ".*_cache", ".venv"))
    build = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(copy)]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    target = ["--target", str(folder), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", *target], check=True)
    return folder


@pytest.fixture
def elmo_tasks(installed: Path, tmp_path: Path):
    """``elmo_tasks("run", "task=ner")``: what the command prints, in an empty folder."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        program = installed / "bin" / "elmo-tasks"
        done = subprocess.run(
            [sys.executable, str(program), *arguments],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert str(REPO) not in done.stdout
        return done.stdout

    return run


def test_the_wheel_has_configuration_declarations_and_licence_but_neither_softmax_nor_rows(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for name in ("conf/config.yaml", "conf/task/ner.yaml", "experiments/table1.py", "experiments/paper.yaml"):
        assert f"elmo_tasks/{name}" in names
    for name in ("bundled/bilm/small/weights.hdf5", "bundled/sample/sst/train.txt", "render/page.css", "py.typed"):
        assert f"elmo_tasks/{name}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [
        name for name in names if "softmax.safetensors" in name or "experiments/rows/" in name or "tests/" in name
    ]
    assert wheel.stat().st_size < 45e6


def test_it_runs_a_table_reports_and_predicts_in_an_empty_folder(elmo_tasks, tmp_path: Path) -> None:
    assert "task.model.hidden" in elmo_tasks("run", "task=ner", "--help")
    settings = ["data=sample", "tasks=ner", "seeds=1", "trainer.max_epochs=1", "fraction=0.1"]
    missing = elmo_tasks("table", "table1", *settings, "--missing").splitlines()
    assert len(missing) == 2
    program, *arguments = missing[0].split()
    assert (program, arguments[0]) == ("elmo-tasks", "run")
    assert {"task=ner", "elmo.placement=none"} <= {*arguments}
    shown = elmo_tasks(*arguments)
    (row,) = (tmp_path / "outputs" / "rows").glob("ner-*.json")
    assert row.stem in shown
    assert "1 done, 0 failed" in elmo_tasks("table", "table1", *settings, "--run")
    assert len([*(tmp_path / "outputs" / "rows").glob("ner-*.json")]) == 2
    assert "ner" in elmo_tasks("report", "outputs/rows")
    (tmp_path / "text.txt").write_text("Anna lives in Berlin .\n")
    (tmp_path / "gold.conll").write_text("Anna B-PER\nlives O\n\n")
    model = f"outputs/runs/{row.stem}"
    assert "Berlin" in elmo_tasks("predict", model, "--text", "text.txt")
    assert "f1" in elmo_tasks("evaluate", model, "--file", "gold.conll")
    assert "Table 1" in elmo_tasks("table", "paper", "data=sample", "tasks=ner")
