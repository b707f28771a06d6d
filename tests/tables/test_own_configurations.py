"""A task whose configuration lies in a folder of the user's own, in help and tables."""

import shlex
from pathlib import Path

import pytest

from elmo_tasks.cli.main import main
from elmo_tasks.errors import UserError
from elmo_tasks.places import CONF
from elmo_tasks.tables import Line, Table
from elmo_tasks.tables.command import execute, read_request
from elmo_tasks.tables.declare import Column

TABLE = Table("Mine", (Line("mine", ("task=mine",)),), (Column("baseline", ("elmo.placement=none",)),), seeds=1)


@pytest.fixture(params=["conf", "my conf, '2'"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param) / "task" / "mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text((CONF / "task" / "sst5.yaml").read_text().replace("name: sst5", "name: mine  # of my own"))
    return path.parents[1]


def test_the_help_has_its_keys(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--config-dir", str(folder), "task=mine", "--help"])
    said = capsys.readouterr().out
    assert "task=     mine | coref" in said
    assert "mine   # of my own" in said
    assert "task.model.embedding_dropout" in said  # of a file that it builds on


def test_the_commands_that_are_missing_find_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute((TABLE,), read_request(["--config-dir", str(folder), "data=sample", "tasks=mine", "--missing"])) == 0
    overrides = [word for word in shlex.split(capsys.readouterr().out) if "=" in word]
    main(["run", *overrides, "--cfg", "job"])
    assert "name: mine" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"^--config-dir={tmp_path}/none: no such folder$"):
        read_request(["--config-dir", str(tmp_path / "none"), "--missing"])
