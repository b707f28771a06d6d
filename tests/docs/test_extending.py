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


def test_the_new_task_may_be_a_package_of_one_s_own(tmp_path: Path) -> None:
    written = dict(FILES)
    for old, new in (("elmo_tasks/data/trec.py", "my_lab/trec.py"), ("elmo_tasks/models/bag.py", "my_lab/bag.py")):
        (tmp_path / new).parent.mkdir(exist_ok=True)
        (tmp_path / new).write_text(written[old], "utf-8")
    conf = tmp_path / "my_conf" / "task" / "trec.yaml"
    conf.parent.mkdir(parents=True)
    config = written["conf/task/trec.yaml"].replace("elmo_tasks.data.trec", "my_lab.trec")
    conf.write_text(config.replace("elmo_tasks.models.bag", "my_lab.bag"), "utf-8")
    data = tmp_path / "my_data" / "trec"
    data.mkdir(parents=True)
    for split in ("train", "test"):
        (data / f"{split}.label").write_text(written[f"elmo_tasks/bundled/sample/trec/{split}.label"], "utf-8")
    (tmp_path / "my_questions.txt").write_text("Where is Oslo ?\n", "utf-8")
    train, predict = re.findall(r"^elmo-tasks .*", PAGE, flags=re.MULTILINE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(REPO)))}

    def command(line: str) -> str:
        arguments = [sys.executable, "-m", "elmo_tasks", *line.split()[1:]]
        done = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "row: outputs/rows/trec-local-" in command(f"{train} trainer.max_epochs=2 trainer.progress=false")
    (run_folder,) = (tmp_path / "outputs" / "runs").iterdir()
    assert command(predict.replace("ID", run_folder.name)).strip()
