"""Weight files and options that were made to do harm: refused in a sentence, with little memory and at once."""

import json
import time
import tracemalloc

import h5py
import numpy as np
import pytest

from elmo_tasks.bilm import BiLM
from elmo_tasks.errors import UserError

NAME = "CNN_proj/b_proj"


@pytest.fixture
def folder(tiny_bilm, tmp_path):
    tiny_bilm.save(tmp_path / "bilm")
    return tmp_path / "bilm"


def refusal(folder):
    """The sentence, which costs less than 50 MB and two seconds."""
    tracemalloc.start()
    start = time.perf_counter()
    with pytest.raises(UserError) as caught:
        BiLM.load(folder)
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    message = str(caught.value)
    assert message.startswith(str(folder))
    assert len(message) - len(str(folder)) < 300
    assert seconds < 2
    assert peak < 50e6
    return message


def null(file, n):
    file.create_dataset(NAME, data=h5py.Empty("f4"))


def texts(file, n):
    file.create_dataset(NAME, data=["a"] * n, dtype=h5py.string_dtype())


def ragged(file, n):
    file.create_dataset(NAME, (n,), dtype=h5py.vlen_dtype(np.float32))


def references(file, n):
    file.create_dataset(NAME, (n,), dtype=h5py.ref_dtype)


def records(file, n):
    file.create_dataset(NAME, (n,), dtype=np.dtype([("a", "f4")]))


def integers(file, n):
    file.create_dataset(NAME, data=np.zeros(n, dtype=np.int32))


def complex_numbers(file, n):
    file.create_dataset(NAME, data=np.zeros(n, dtype=np.complex64))


@pytest.mark.parametrize("make", [null, texts, ragged, references, records, integers, complex_numbers])
def test_anything_but_an_array_of_floats_is_refused(folder, make):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        n = file[NAME].size
        del file[NAME]
        make(file, n)
    message = refusal(folder)
    assert f"'{NAME}'" in message
    assert "holds" in message or "has no shape" in message


@pytest.mark.parametrize("part", [NAME, "CNN_proj"])
def test_links_to_other_files_are_not_followed(folder, part):
    with h5py.File(folder / "weights.hdf5", "r+") as file, h5py.File(folder / "other", "w") as other:
        file.copy(file[part], other, name=part)
        del file[part]
        file[part] = h5py.ExternalLink("other", part)
    assert "is a link to another file, which is not followed" in refusal(folder)


def test_numbers_in_other_files_are_not_read(folder):
    path = folder / "weights.hdf5"
    with h5py.File(path, "r+") as file:
        n = file[NAME].size
        (folder / "numbers").write_bytes(np.zeros(n, dtype=np.float32).tobytes())
        del file[NAME]
        file.create_dataset(NAME, (n,), "f4", external=[(str(folder / "numbers"), 0, 4 * n)])
    assert "is stored in another file, which is not read" in refusal(folder)
    with h5py.File(path, "r+") as file, h5py.File(folder / "source", "w") as source:
        source.create_dataset("x", data=np.zeros(n, dtype=np.float32))
        del file[NAME]
        layout = h5py.VirtualLayout((n,), "f4")
        layout[:] = h5py.VirtualSource(source["x"])
        file.create_virtual_dataset(NAME, layout)
    assert "is stored in another file, which is not read" in refusal(folder)


def test_numbers_that_are_not_in_the_file_are_not_invented(folder):
    options = json.loads((folder / "options.json").read_text())
    options["lstm"]["dim"] = 60_000
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        n_inputs = file["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0"].shape[0]
        width = file["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0"].shape[1]
        for direction in range(2):
            for cell in range(options["lstm"]["n_layers"]):
                place = f"RNN_{direction}/RNN/MultiRNNCell/Cell{cell}/LSTMCell"
                for name, shape in (("W_0", (n_inputs, 240_000)), ("B", (240_000,)), ("W_P_0", (60_000, width))):
                    del file[f"{place}/{name}"]
                    file.create_dataset(f"{place}/{name}", shape, "f4", chunks=True, fillvalue=0.5)
    assert "bytes, of which 0 are in the file" in refusal(folder)


def test_a_shape_is_compared_before_any_number_is_read(folder):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        del file[NAME]
        file.create_dataset(NAME, (10**12,), "f4", chunks=True, compression="gzip")
    assert "has shape (1000000000000,), but the options ask for" in refusal(folder)


def test_a_file_of_too_many_datasets_is_given_up_early(folder):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        for k in range(10_001):
            file[f"CNN/hard{k}"] = file[NAME]  # a hard link takes no room; visited once
            if k % 100 == 0:
                file.create_dataset(f"CNN/x{k}", data=1.0)
    assert "has no place" in refusal(folder)


def test_a_device_is_no_weight_file(folder):
    (folder / "weights.hdf5").unlink()
    (folder / "weights.hdf5").symlink_to("/dev/zero")
    assert "not a regular one" in refusal(folder)


@pytest.mark.parametrize(
    ("section", "changes", "sentence"),
    [
        ("char_cnn", {"filters": []}, r"char_cnn.filters must be a list of [width, count], found []"),
        ("char_cnn", {"filters": [[1, 1]] * 101}, "char_cnn.filters must be a list of"),
        ("char_cnn", {"filters": [[51, 1]]}, "filter width must be a whole number from 1 to 50, found 51"),
        ("char_cnn", {"filters": [[1, 10**9]]}, "filters must be a whole number from 1 to 100,000"),
        ("char_cnn", {"n_highway": 10**7}, "char_cnn.n_highway must be a whole number from 0 to 100"),
        ("char_cnn", {"embedding": {"dim": 10**9}}, "char_cnn.embedding.dim must be a whole number"),
        ("lstm", {"dim": 10**9}, "lstm.dim must be a whole number from 1 to 100,000, found 1000000000"),
        ("lstm", {"dim": 10**5, "projection_dim": 10**5}, "parameters; expected at most 2,000,000,000"),
        ("lstm", {"dim": 10**400}, "lstm.dim must be a whole number"),
        ("lstm", {"n_layers": 10**7}, "lstm.n_layers must be a whole number from 1 to 100"),
        ("lstm", {"cell_clip": 1e300}, "lstm.cell_clip must be a positive number"),
    ],
)
def test_absurd_sizes_are_refused_before_anything_is_allocated(folder, section, changes, sentence):
    options = json.loads((folder / "options.json").read_text())
    options[section].update(changes)
    (folder / "options.json").write_text(json.dumps(options))
    assert sentence in refusal(folder)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (" " * 10_000_001, "larger than 10,000,000 bytes"),
        (b"\xff\xfe", "not JSON"),
        ('{"lstm": "' + "x" * 1000 + '"}', "the section 'char_cnn' is missing"),
        ('["' + "x" * 1000 + '"]', "expected bilm-tf's options"),
    ],
)
def test_options_that_do_not_exist_are_refused(folder, content, sentence):
    path = folder / "options.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert sentence in refusal(folder)


def test_a_byte_order_mark_does_no_harm(folder):
    path = folder / "options.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert BiLM.load(folder)


def test_the_number_of_parameters_is_counted_right(tiny_options):
    bilm = BiLM(tiny_options)
    assert tiny_options.n_parameters == sum(p.numel() for p in bilm.parameters())
