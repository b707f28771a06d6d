"""The page on adding a task, carried out in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PAGE = (REPO / "docs" / "extending.md").read_text("utf-8")
FILES = re.findall(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository with the files of the page."""
    folder = tmp_path_factory.mktemp("extending") / "copy"
    for name in ("conf", "elmo_tasks", "tests"):
        shutil.copytree(REPO / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "softmax.safetensors"))
    for name in ("run.py", "pyproject.toml"):
        shutil.copy(REPO / name, folder / name)
    for name, content in FILES:
        assert not (folder / name).exists(), f"{name}: a shared file"
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return folder


def run(copy: Path, *arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_every_file_of_its_table() -> None:
    table = re.findall(r"^\| `([\w./]+)` \|", PAGE, flags=re.MULTILINE)
    assert len(table) == 5
    for name in table:
        assert any(written.startswith(name) for written, _ in FILES), name


def test_the_new_task_passes_the_contract_test_and_its_own(copy: Path) -> None:
    tests = ("tests/contract", "tests/tasks/test_trec.py", "-k", "trec")
    shown = run(copy, "-m", "pytest", *tests, "-n", "0", "-p", "no:cacheprovider")
    assert re.search(r"\[trec|\.{20}", shown), shown
    assert "skipped" not in shown


def test_the_new_task_trains_and_is_explained(copy: Path) -> None:
    assert "task.model.hidden" in run(copy, "run.py", "task=trec", "--help")
    shown = run(copy, "run.py", "task=trec", "elmo.placement=both", "trainer.progress=false")
    assert "trec-sample-cpu-both" in shown


def test_the_new_files_pass_ruff(copy: Path) -> None:
    python = [name for name, _ in FILES if name.endswith(".py")]
    run(copy, "-m", "ruff", "check", "--no-cache", *python)
    run(copy, "-m", "ruff", "format", "--check", "--no-cache", *python)


def test_the_whole_package_passes_mypy_with_them(copy: Path) -> None:
    """The check of the package itself too: it takes half a minute, and this way it is made once."""
    run(copy, "-m", "mypy", "--cache-dir", str(copy / "cache"))
