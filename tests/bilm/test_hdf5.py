import h5py
import numpy as np
import pytest

from elmo_tasks.bilm.hdf5 import _DeferredErrors, new_file
from elmo_tasks.errors import UserError

ARRAY = np.arange(30_000, dtype=np.float32).reshape(100, 300)


def test_arrays_come_back_under_their_names(tmp_path):
    with new_file(tmp_path / "out") as write:
        write("a/b", ARRAY)
        write("1", ARRAY[:0])
    with h5py.File(tmp_path / "out") as file:
        assert sorted(file) == ["1", "a"]
        assert file["1"].shape == (0, 300)
        np.testing.assert_array_equal(file["a/b"][:], ARRAY)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def fill(path, arrays):
    with new_file(path) as write:
        for k, array in enumerate(arrays):
            write(str(k), array)


def test_a_full_disk_is_noticed_at_once(tmp_path, limited):
    arrays = iter([ARRAY] * 50)  # of 120,000 bytes each
    with pytest.raises(UserError, match=r"out: cannot be written \(File too large\)$"), limited(300_000):
        fill(tmp_path / "out", arrays)
    assert len(list(arrays)) == 47
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_when_the_file_is_closed_is_noticed(tmp_path, limited):
    with pytest.raises(UserError, match=r"out: cannot be written \(File too large\)$"), limited(0):
        fill(tmp_path / "out", [])
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_at_the_end_is_noticed(tmp_path, limited):
    with _DeferredErrors(tmp_path / "out", "w+") as file, limited(10):
        assert file.truncate(100) == 100
        with pytest.raises(OSError, match="File too large"):
            file.raise_error()


def test_an_older_file_stays_until_the_new_one_is_whole(tmp_path):
    def arrays():
        yield ARRAY
        raise KeyboardInterrupt

    (tmp_path / "out").write_text("older")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "out", arrays())
    assert (tmp_path / "out").read_text() == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
