"""Files of tensors: whole or not at all, and for whom the umask says."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from elmo_tasks.errors import UserError
from elmo_tasks.files import STALE
from elmo_tasks.tensors import write_tensors

TENSORS = {"a": torch.arange(6.0).view(2, 3), "b": torch.zeros(0, dtype=torch.int64)}


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "new" / "state.safetensors"
    write_tensors(path, TENSORS, "the state", {"said": "so"})
    torch.testing.assert_close(load_file(path), TENSORS, rtol=0, atol=0)
    with safe_open(path, framework="pt") as file:
        assert file.metadata() == {"said": "so"}
    assert [file.name for file in path.parent.iterdir()] == ["state.safetensors"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_a_file_has_the_permissions_of_the_umask(tmp_path, umask, mode):
    """A group on a cluster shares its results folder."""
    before = os.umask(umask)
    try:
        write_tensors(tmp_path / "w.safetensors", TENSORS, "the weights")
    finally:
        os.umask(before)
    assert (tmp_path / "w.safetensors").stat().st_mode & 0o777 == mode


def test_on_a_full_disk_the_earlier_file_stays(tmp_path, limited):
    path = tmp_path / "w.safetensors"
    write_tensors(path, TENSORS, "the weights")
    before = path.read_bytes()
    large = {"a": torch.zeros(10_000)}
    with (
        pytest.raises(UserError, match=rf"^{path}: the weights cannot be written \(.*\); choose another folder"),
        limited(1_000),
    ):
        write_tensors(path, large, "the weights")
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


KILLED = """
import os, signal, sys, torch
import elmo_tasks.tensors as tensors
real = tensors.save_file
def save_file(*arguments):
    real(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
tensors.save_file = save_file
from pathlib import Path
tensors.write_tensors(Path(sys.argv[1]), {"a": torch.ones(9)}, "the weights")
"""


def test_what_a_killed_process_leaves_is_removed_after_a_day(tmp_path):
    path = tmp_path / "w.safetensors"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert done.returncode == -signal.SIGKILL
    left = [*tmp_path.iterdir()]
    assert left
    for each in left:
        os.utime(each, (time.time() - STALE - 60,) * 2)
    write_tensors(path, TENSORS, "the weights")
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_in_the_place_of_the_folder_gives_a_one_sentence_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=r"w\.safetensors: the weights cannot be written \(.*Not a directory.*\)"):
        write_tensors(Path(tmp_path / "file" / "run" / "w.safetensors"), TENSORS, "the weights")
