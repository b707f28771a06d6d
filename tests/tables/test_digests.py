"""Digests of the bundled weights, which are stored beside them so that tables need no PyTorch."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.files import read_json
from elmo_tasks.places import BUNDLED
from elmo_tasks.tables import digests
from elmo_tasks.tables.wanted import compose_wanted

STORED = read_json(BUNDLED / "bilm" / "digests.json")


@pytest.mark.parametrize("name", ["mini", "mini_ko"])
def test_stored_digests_are_those_of_the_weights(name: str) -> None:
    bilm = compose_wanted(("task=ner", "data=local", f"bilm={name}")).config["bilm"]
    for precision in ("float32", "bfloat16", "int8"):
        assert STORED[name][precision] == digests._digest_encoder(bilm | {"precision": precision})
    assert STORED[name]["start"] == digests._digest_start({"init": name, "bilm": bilm})


def test_every_bundled_bilm_has_its_digests() -> None:
    assert {*STORED} == {folder.name for folder in (BUNDLED / "bilm").iterdir() if folder.is_dir()}
    for name, about in STORED.items():
        assert digests._read_stored({"name": name}) == about | {
            "options": read_json(BUNDLED / "bilm" / name / "options.json")
        }


@pytest.mark.parametrize("damage", ["changed", "gone"])
def test_where_files_have_changed_nothing_is_stored(tmp_path: Path, monkeypatch: Any, damage: str) -> None:
    shutil.copytree(BUNDLED / "bilm" / "mini", tmp_path / "bilm" / "mini")
    monkeypatch.setattr(digests, "BUNDLED", tmp_path)
    assert digests._read_stored({"name": "mini"})["float32"] == STORED["mini"]["float32"]
    file = tmp_path / "bilm" / "mini" / "vocabulary.txt"
    if damage == "changed":
        file.write_text("other")
    else:
        file.unlink()
    assert digests._read_stored({"name": "mini"}) == {}
