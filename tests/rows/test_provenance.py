"""Which commit a row names, in repositories that are made for the purpose."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_tasks.rows import provenance
from elmo_tasks.rows.parts import Code


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working tree with one commit, in which this module lies as in the project's."""
    module = tmp_path / "elmo_tasks" / "rows" / "provenance.py"
    module.parent.mkdir(parents=True)
    (tmp_path / "experiments").mkdir()
    shutil.copy(str(provenance.__file__), module)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    monkeypatch.setattr(provenance, "__file__", str(module))
    provenance.current_code.cache_clear()
    yield tmp_path
    provenance.current_code.cache_clear()


def test_a_clean_tree_has_its_commit(repository: Path) -> None:
    assert provenance.current_code() == Code(commit=git(repository, "rev-parse", "HEAD"), dirty=False)


@pytest.mark.parametrize(
    ("name", "dirty"),
    [
        ("elmo_tasks/rows/provenance.py", True),
        ("elmo_tasks/mine.py", True),
        ("experiments/mine.py", True),
        ("experiments/row.json", False),
        ("outputs/mine.py", False),
    ],
)
def test_a_tree_is_dirty_if_its_code_changed_or_has_new_files(repository: Path, name: str, dirty: bool) -> None:
    (repository / name).parent.mkdir(exist_ok=True)
    with (repository / name).open("a") as file:
        file.write("# more\n")
    assert provenance.current_code().dirty is dirty


def test_an_installed_package_has_no_commit_not_even_that_of_a_tree_around_it(repository: Path) -> None:
    (repository / ".gitignore").write_text("elmo_tasks/\n")
    git(repository, "rm", "-rq", "--cached", "elmo_tasks")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "another project")
    assert provenance.current_code() == Code(commit=None, dirty=None)
