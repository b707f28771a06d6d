"""Files that are cut into parts and put together again, whatever else lies beside them."""

import shutil
from pathlib import Path

import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.pretraining.__main__ import main
from elmo_tasks.pretraining.parts import join_files, remove_parts, split_files

OLD, NEW = b"old" * 40, b"new" * 40


def split(folder: Path, content: bytes) -> list[Path]:
    (folder / "w").write_bytes(content)
    split_files(folder, 50)
    return sorted(folder.glob("w.part-*"))


def test_parts_are_within_the_bound_and_join_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"x")
    parts = split(tmp_path, NEW)
    assert [len(part.read_bytes()) for part in parts] == [50, 50, 20]
    assert {path.name for path in tmp_path.iterdir()} == {"small", *(part.name for part in parts)}
    assert join_files(tmp_path) == [tmp_path / "w"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"small": b"x", "w": NEW}


def test_a_file_may_have_more_than_999_parts_and_hidden_files_are_not_cut(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(bytes(1280))
    (tmp_path / ".w.0123.tmp").write_bytes(b"of a killed process")
    split_files(tmp_path, 1)
    assert len(list(tmp_path.iterdir())) == 1281
    assert join_files(tmp_path) == [tmp_path / "w"]
    assert {path.name: len(path.read_bytes()) for path in tmp_path.iterdir()} == {"w": 1280, ".w.0123.tmp": 19}


def test_parts_of_an_earlier_version_are_replaced(tmp_path: Path) -> None:
    split(tmp_path, OLD)
    split(tmp_path, NEW)
    join_files(tmp_path)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [NEW]
    split(tmp_path, OLD)
    remove_parts(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("n_written", [0, 1, 2, 3])
def test_a_process_that_is_killed_while_it_splits_leaves_the_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_written: int
) -> None:
    from elmo_tasks.pretraining import parts

    split(tmp_path, OLD)
    written: list[Path] = []
    real = parts.write_bytes

    def write(path: Path, content: bytes, remedy: str) -> None:
        if len(written) == n_written:
            raise KeyboardInterrupt
        real(path, content, remedy=remedy)
        written.append(path)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parts, "write_bytes", write)
        patch.setattr(parts, "remove_parts", killed)
        with pytest.raises(KeyboardInterrupt):
            split(tmp_path, NEW)
    if n_written == 0:  # nothing tells the two versions apart
        with pytest.raises(
            UserError, match=r"w: there are parts of another version of it; remove the file or the parts"
        ):
            join_files(tmp_path)
        remove_parts(tmp_path)
    join_files(tmp_path)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [NEW]


def test_a_process_that_is_killed_while_it_joins_can_join_again(tmp_path: Path) -> None:
    first, *_ = split(tmp_path, NEW)
    (tmp_path / "w").write_bytes(NEW)
    first.unlink()
    join_files(tmp_path)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [NEW]


def test_parts_of_two_versions_are_never_mixed(tmp_path: Path) -> None:
    for part in split(tmp_path, OLD):
        shutil.move(part, tmp_path / f"kept-{part.name}")
    split(tmp_path, NEW)
    for part in tmp_path.glob("kept-*"):
        shutil.move(part, tmp_path / part.name.removeprefix("kept-"))
    with pytest.raises(UserError, match=r"w: there are parts of 2 versions of it; remove those of the older ones$"):
        join_files(tmp_path)
    assert len(list(tmp_path.iterdir())) == 6


def test_parts_that_are_missing_or_damaged_are_named(tmp_path: Path) -> None:
    _, second, third = split(tmp_path, NEW)
    third.write_bytes(b"x" * 20)
    with pytest.raises(
        UserError, match=r"w: its parts are damaged: together they do not have the digest in their names$"
    ):
        main(["join", str(tmp_path)])
    assert not (tmp_path / "w").exists()
    second.unlink()
    with pytest.raises(UserError, match=f"^{second}: missing; w has 3 parts$"):
        main(["join", str(tmp_path)])
