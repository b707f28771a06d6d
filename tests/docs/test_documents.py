import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import DOCUMENTS, REPO, anchors, blocks, links

CARDS = sorted((REPO / "elmo_tasks" / "bundled").rglob("*.md"))


@pytest.mark.parametrize("document", [*DOCUMENTS, *CARDS], ids=lambda path: str(path.relative_to(REPO)))
def test_every_link_leads_to_a_file_and_a_heading(document: Path) -> None:
    for target in links(document):
        name, _, anchor = target.partition("#")
        path = document if not name else document.parent / name
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_readme_is_short_and_leads_to_every_page() -> None:
    readme = REPO / "README.md"
    assert len(readme.read_text("utf-8").splitlines()) <= 150
    pages = {f"docs/{path.name}" for path in (REPO / "docs").glob("*.md")}
    assert pages <= {target.partition("#")[0] for target in links(readme)}


def test_things_to_do_are_two_links_away_from_readme() -> None:
    section = (REPO / "docs" / "README.md").read_text("utf-8").partition("## I want to")[2]
    rows = re.findall(r"^\| (?!what|---)(.+?) \| (.*\]\(.+\).*) \|$", section, flags=re.MULTILINE)
    assert len(rows) == 11
    assert "docs/README.md#i-want-to-" in links(REPO / "README.md")


@pytest.mark.parametrize(
    "document", [path for path in DOCUMENTS if path.name != "extending.md"], ids=lambda path: path.name
)
def test_python_examples_run(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in blocks(document, "python"):
        if "load_run" not in example:  # tests/predict has a run
            exec(example, names)


def test_a_table_of_one_s_own_lists_each_run_once(tmp_path: Path) -> None:
    (example,) = blocks(REPO / "docs" / "paper.md", "python")
    (tmp_path / "my_table.py").write_text(example, "utf-8")
    environment = os.environ | {"PYTHONPATH": str(REPO)}
    command = [sys.executable, "my_table.py", "data=sample", "--missing", f"rows={tmp_path}"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = [line for line in done.stdout.splitlines() if line.startswith("elmo-tasks run ")]
    assert len(listed) == len(set(listed)) == 9, "three of the baseline, three of each dropout"
    assert sum("elmo.placement=none" in line for line in listed) == 3


def test_the_example_of_readme_has_the_shapes_that_it_says() -> None:
    (example,) = blocks(REPO / "README.md", "python")
    names: dict = {}
    exec(example, names)
    assert tuple(names["vectors"].shape) == (2, 6, 256)
    assert tuple(names["elmo"].layers.shape) == (2, 3, 6, 256)
