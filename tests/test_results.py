import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.results import SCHEMA, fingerprint, finished_row, load, prepare_folder, read_row, write_json


def test_the_fingerprint_sees_values_and_nothing_else() -> None:
    assert fingerprint({"a": 1, "b": [2, True]}) == fingerprint({"b": [2.0, True], "a": 1.0})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": True}) != fingerprint({"a": 1})


def test_a_json_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["row.json"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"results\.dir"):
        write_json(tmp_path / "file" / "row.json", {})
    with pytest.raises(UserError, match=r"results\.dir"):
        prepare_folder(tmp_path / "file" / "rows")


@pytest.mark.parametrize("content", ["", "[]", "{}", "{", '{"schema": 0}'])
def test_what_is_not_a_row_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "row.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"row\.json: not a"):
        read_row(path)


def test_only_finished_rows_are_loaded_and_count_as_finished(tmp_path: Path) -> None:
    rows: dict[str, dict[str, Any]] = {
        "a": {"schema": SCHEMA, "status": "finished", "scores": {"dev": {}}},
        "b": {"schema": SCHEMA, "status": "failed"},
    }
    for name, row in rows.items():
        write_json(tmp_path / f"{name}.json", row)
    assert load(tmp_path) == [rows["a"]]
    assert load(tmp_path, "failed") == [rows["b"]]
    assert finished_row(tmp_path / "a.json", needs_test=False) == rows["a"]
    assert finished_row(tmp_path / "a.json", needs_test=True) is None
    assert finished_row(tmp_path / "b.json", needs_test=False) is None
    assert finished_row(tmp_path / "c.json", needs_test=False) is None
