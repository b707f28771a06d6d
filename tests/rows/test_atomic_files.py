"""Files appear whole or not at all, and nobody else's file is written to."""

import json
import os
import time
from pathlib import Path

import pytest

from elmo_tasks.config.identity import short_digest
from elmo_tasks.errors import UserError
from elmo_tasks.files import STALE, sha256, write_atomically, write_bytes, write_json
from elmo_tasks.rows.io import prepare_folder


def test_the_fingerprint_sees_values_and_nothing_else() -> None:
    assert short_digest({"a": 1, "b": [2, True]}) == short_digest({"b": [2.0, True], "a": 1.0})
    assert short_digest({"a": 1}) != short_digest({"a": 2})
    assert short_digest({"a": True}) != short_digest({"a": 1})


def test_a_json_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    write_json(path, {"a": 1})
    for content, error in (({"a": object()}, TypeError), ({"a": float("nan")}, ValueError)):
        with pytest.raises(error):
            write_json(path, content)
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["row.json"]


def test_a_file_that_cannot_be_written_leaves_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    write_bytes(path, b"before")

    def fill(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomically(path, fill)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("weights", b"before")]


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr("secrets.token_hex", lambda n: "known")
    (tmp_path / ".row.json.known.tmp").symlink_to(victim)
    with pytest.raises(UserError, match="cannot be written"):
        write_bytes(tmp_path / "row.json", b"theirs")
    assert victim.read_text() == "mine"


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the file is empty after a power cut, and what it replaced is gone."""
    done: list[tuple[str, str]] = []

    def sync(descriptor: int) -> None:
        done.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))

    def rename(self: Path, target: Path) -> None:
        done.append(("rename", target.name))
        os.replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", rename)
    write_atomically(tmp_path / "a", lambda temporary: temporary.write_bytes(b"x"))
    (first, temporary), *rest = done
    assert first == "sync"
    assert temporary.startswith(".a.")
    assert rest == [("rename", "a"), ("sync", tmp_path.name)]


def test_temporary_files_of_killed_processes_are_removed_after_a_day(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (".a[1].x.tmp", ".a[1].y.tmp", ".b.x.tmp"))
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (time.time() - STALE - 60,) * 2)
    write_bytes(tmp_path / "a[1]", b"")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".a[1].y.tmp", ".b.x.tmp", "a[1]"]


def test_a_file_has_the_permissions_that_the_umask_grants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_bytes(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_digest_is_that_of_the_content(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a", b"abc")
    assert sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"results\.dir"):
        write_json(tmp_path / "file" / "row.json", {})
    with pytest.raises(UserError, match=r"results\.dir"):
        prepare_folder(tmp_path / "file" / "rows")


def test_a_whole_number_is_a_decimal_one_and_no_truth_value():
    assert short_digest({"a": 1}) == short_digest({"a": 1.0}) != short_digest({"a": True})
