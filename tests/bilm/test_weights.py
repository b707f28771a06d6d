import dataclasses
import json
import re
import string
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_tasks.assembly.encoder import load_encoder
from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.errors import UserError
from elmo_tasks.store.layers import LayerStore

CELL = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell"


@pytest.fixture
def folder(tiny_bilm, tmp_path):
    tiny_bilm.save(tmp_path / "bilm")
    return tmp_path / "bilm"


def datasets(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[...]} if isinstance(item, h5py.Dataset) else {}))
    return found


def parameters(bilm):
    """All that is in a weight file: the embedding of character 0, which no word has, is not."""
    values = bilm.state_dict()
    values["encoder.characters"] = values["encoder.characters"][1:]
    return values


def change_options(folder, section, **values):
    path = folder / "options.json"
    options = json.loads(path.read_text("utf-8"))
    options[section].update(values)
    path.write_text(json.dumps(options), "utf-8")


def change_dataset(folder, name, change):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        values = file[name][...]
        del file[name]
        file.create_dataset(name, data=change(values))


def refusal(folder):
    with pytest.raises(UserError) as caught:
        BiLM.load(folder)
    return str(caught.value)


def test_what_was_saved_in_float32_is_loaded_exactly(tiny_bilm, folder):
    loaded = BiLM.load(folder)
    assert loaded.options == tiny_bilm.options
    torch.testing.assert_close(parameters(loaded), parameters(tiny_bilm), rtol=0, atol=0)
    assert torch.equal(loaded.layers([["a", "b"]])[0], tiny_bilm.layers([["a", "b"]])[0])


def test_what_was_saved_in_float16_is_rounded_to_float16(tiny_bilm, tmp_path):
    tiny_bilm.save(tmp_path, dtype="float16")
    expected = {name: value.half().float() for name, value in parameters(tiny_bilm).items()}
    torch.testing.assert_close(parameters(BiLM.load(tmp_path)), expected, rtol=0, atol=0)
    assert {values.dtype for values in datasets(tmp_path / "weights.hdf5").values()} == {np.dtype("float16")}


def test_a_loaded_bilm_is_frozen(folder):
    bilm = BiLM.load(folder)
    assert not any(p.requires_grad for p in bilm.parameters())
    assert not any(module.training for module in bilm.modules())


def test_a_saved_copy_of_an_official_file_holds_the_same_datasets(shared, tmp_path):
    BiLM.load(shared / "fixtures" / "elmo").save(tmp_path)
    original = datasets(shared / "fixtures" / "elmo" / "lm_weights.hdf5")
    copy = datasets(tmp_path / "weights.hdf5")
    assert copy.keys() == original.keys()
    for name, values in original.items():
        np.testing.assert_array_equal(copy[name], values)


def test_the_official_names_and_shapes_are_on_disk(folder):
    shapes = {name: values.shape for name, values in datasets(folder / "weights.hdf5").items()}
    assert shapes["char_embed"] == (261, 4)
    assert shapes["CNN/W_cnn_1"] == (1, 2, 4, 8)
    assert shapes["CNN/b_cnn_2"] == (8,)
    assert shapes["CNN_high_0/W_carry"] == (20, 20)
    assert shapes["CNN_proj/W_proj"] == (20, 6)
    assert shapes[f"{CELL}/W_0"] == (12, 48)
    assert shapes[f"{CELL}/W_P_0"] == (12, 6)
    assert len(shapes) == 1 + 2 * 3 + 4 + 2 + 2 * 2 * 3


@pytest.mark.parametrize(("projection_dim", "dim", "missing"), [(20, 24, "CNN_proj/"), (12, 12, "/W_P_0")])
def test_without_a_projection_the_file_has_none_either(
    tiny_options, tiny_bilm, shake, tmp_path, projection_dim, dim, missing
):
    bilm = shake(BiLM(dataclasses.replace(tiny_options, projection_dim=projection_dim, dim=dim)))
    bilm.save(tmp_path / "without")
    tiny_bilm.save(tmp_path / "with")
    names, usual = (set(datasets(tmp_path / folder / "weights.hdf5")) for folder in ("without", "with"))
    assert names == {name for name in usual if missing not in name} != usual
    torch.testing.assert_close(parameters(BiLM.load(tmp_path / "without")), parameters(bilm), rtol=0, atol=0)


def test_a_projection_that_the_options_do_not_ask_for_is_refused(tiny_options, tiny_bilm, tmp_path):
    BiLM(dataclasses.replace(tiny_options, projection_dim=12)).save(tmp_path)
    with h5py.File(tmp_path / "weights.hdf5", "r+") as file:
        file[f"{CELL}/W_P_0"] = np.eye(12)
    assert f"{CELL}/W_P_0' has no place: the options ask for lstm.dim 12, lstm.projection_dim 12" in refusal(tmp_path)


def test_a_highway_that_the_options_do_not_ask_for_is_refused(folder):
    change_options(folder, "char_cnn", n_highway=0)
    assert "'CNN_high_0/W_carry' has no place: the options ask for" in refusal(folder)


def test_a_dataset_that_is_no_layer_does_no_harm(tiny_bilm, folder):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        file["note"] = "by hand"
    torch.testing.assert_close(parameters(BiLM.load(folder)), parameters(tiny_bilm))


def test_lstms_narrower_than_their_input_are_refused(folder):
    change_options(folder, "lstm", projection_dim=13)
    assert "lstm.projection_dim must be at most lstm.dim, found 13 and 12" in refusal(folder)


@pytest.mark.parametrize("n_characters", [261, 262])
def test_both_counts_of_characters_are_accepted(tiny_bilm, folder, n_characters):
    change_options(folder, "char_cnn", n_characters=n_characters)
    torch.testing.assert_close(parameters(BiLM.load(folder)), parameters(tiny_bilm))


def test_files_may_have_a_prefix(folder, tiny_bilm):
    for name in ("options.json", "weights.hdf5"):
        (folder / name).rename(folder / f"elmo_2x4096_{name}")
    torch.testing.assert_close(parameters(BiLM.load(folder)), parameters(tiny_bilm))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"cell_clip": float("inf"), "proj_clip": float("inf")},
        {"skip_connections": False},
        {"n_highway": 0},
        {"activation": "tanh"},
        {"max_characters": 20},
    ],
)
def test_options_survive_their_json(tiny_options, change):
    options = dataclasses.replace(tiny_options, **change)
    assert BiLMOptions.from_json(json.loads(json.dumps(options.to_json()))) == options


@pytest.mark.parametrize("name", ["model.hdf5", "mimic_wiki.hdf5"])
def test_the_only_weight_file_may_have_any_name(folder, tiny_bilm, name):
    (folder / "weights.hdf5").rename(folder / name)
    assert BiLM.load(folder).digest == tiny_bilm.digest
    (folder / "softmax.hdf5").write_bytes(b"no weights")
    assert refusal(folder).endswith(
        f"expected exactly one file *.hdf5, found {', '.join(sorted([name, 'softmax.hdf5']))}"
    )
    (folder / name).rename(folder / "weights.hdf5")
    assert BiLM.load(folder).digest == tiny_bilm.digest


def test_activation_and_length_of_words_are_saved_and_each_is_another_bilm(tiny_options, shake, tmp_path):
    words = [["a", string.ascii_letters, "été", "cat"]]
    digests, layers = set(), []
    for change in ({}, {"activation": "tanh"}, {"max_characters": 20}, {"max_characters": 60}):
        bilm = shake(BiLM(dataclasses.replace(tiny_options, **change))).eval().requires_grad_(False)
        bilm.encoder.characters[0] = 0
        bilm.save(tmp_path / "saved")
        loaded = BiLM.load(tmp_path / "saved")
        assert loaded.options == bilm.options
        torch.testing.assert_close(loaded.layers(words), bilm.layers(words), rtol=0, atol=0)
        digests.add(bilm.digest)
        layers.append(bilm.layers(words)[0])
        store = LayerStore(tmp_path / "store", loaded, dtype="float32")
        assert store.fill(words).computed == 4
        torch.testing.assert_close(store.padded(words)[0], layers[-1], rtol=0, atol=1e-5)
    assert len(digests) == 4
    plain, tanh, short, long = layers
    assert (plain - tanh).abs().max() > 0.1
    for other in (short, long):  # than 48 bytes for the second word; the first is the same in all
        assert (plain[0, 1] - other[0, 1]).abs().max() > 1e-3
        torch.testing.assert_close(plain[0, 0], other[0, 0], rtol=0, atol=1e-5)


def test_a_shorter_word_is_announced_with_its_own_limit(tiny_options):
    bilm = BiLM(dataclasses.replace(tiny_options, max_characters=20))
    assert bilm.prepare(["a" * 18, "b" * 19]) == f"words longer than 18 bytes are truncated: 1, such as '{'b' * 19}'"


def test_the_digest_of_the_bundled_bilm_is_that_of_the_stored_rows():
    assert BiLM.load("mini").digest == "140e94e005dc4534"


def test_a_missing_folder_is_named(tmp_path):
    assert str(tmp_path / "nowhere") in refusal(tmp_path / "nowhere")
    assert "bilm.path" in refusal(tmp_path / "nowhere")


def test_the_folder_of_a_run_names_that_of_its_bilm(tmp_path):
    (tmp_path / "bilm").mkdir()
    with pytest.raises(UserError, match=rf"found none; {re.escape(str(tmp_path))}/bilm is a folder within it$"):
        BiLM.load(tmp_path)


@pytest.mark.parametrize("name", ["options.json", "weights.hdf5"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    message = refusal(folder)
    assert str(folder) in message
    assert f"*{name}, found none" in message


def test_two_weight_files_are_refused_and_both_named(folder):
    (folder / "old_weights.hdf5").write_bytes((folder / "weights.hdf5").read_bytes())
    assert "old_weights.hdf5, weights.hdf5" in refusal(folder)


@pytest.mark.parametrize("keep", [0, 0.01, 0.5, 0.99])
def test_a_truncated_weight_file_is_refused(folder, keep):
    path = folder / "weights.hdf5"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    assert f"{path}: damaged" in refusal(folder)


@pytest.mark.parametrize("mark", [b"SNOD", b"TREE", b"HEAP"])
def test_a_weight_file_damaged_inside_is_refused(folder, mark):
    path = folder / "weights.hdf5"
    path.write_bytes(path.read_bytes().replace(mark, b"\0\0\0\0"))
    assert str(path) in refusal(folder)


@pytest.mark.parametrize("name", ["char_embed", "CNN/b_cnn_2", "CNN_high_0/W_carry", "CNN_proj/b_proj", f"{CELL}/B"])
def test_a_missing_dataset_is_named(folder, name):
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        del file[name]
    message = refusal(folder)
    assert str(folder / "weights.hdf5") in message
    assert repr(name) in message


def test_a_wrong_shape_is_named_with_both_shapes(folder):
    change_dataset(folder, f"{CELL}/W_P_0", lambda values: values[:, :5])
    message = refusal(folder)
    assert all(part in message for part in (str(folder / "weights.hdf5"), f"{CELL}/W_P_0", "(12, 5)", "(12, 6)"))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_refused(folder, bad):
    def spoil(values):
        values[-1] = bad
        return values

    change_dataset(folder, "CNN_proj/b_proj", spoil)
    assert re.search(r"weights\.hdf5: 'CNN_proj/b_proj' holds values that are not finite", refusal(folder))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("lstm: 1", "not JSON"),
        ("[1]", "expected bilm-tf's options with 'lstm' and 'char_cnn', found [1]"),
        ("3", "expected bilm-tf's options with 'lstm' and 'char_cnn', found 3"),
        ('{"char_cnn": {}}', "the section 'lstm' is missing"),
        ('{"lstm": {}}', "the section 'char_cnn' is missing"),
    ],
)
def test_a_file_that_holds_no_options_is_refused(folder, text, expected):
    (folder / "options.json").write_text(text)
    assert f"{folder / 'options.json'}: {expected}" in refusal(folder)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("char_cnn", "n_characters", 300),
        ("char_cnn", "max_characters_per_token", 2),
        ("char_cnn", "max_characters_per_token", 50.0),
        ("char_cnn", "activation", "sigmoid"),
        ("char_cnn", "filters", 7),
        ("char_cnn", "filters", [[1, 2, 3]]),
        ("lstm", "dim", -1),
        ("lstm", "dim", 1.5),
        ("lstm", "projection_dim", "6"),
        ("lstm", "n_layers", None),
        ("lstm", "use_skip_connections", "false"),
        ("lstm", "use_skip_connections", 1),
        ("char_cnn", "n_highway", False),
        ("char_cnn", "n_highway", []),
    ],
)
def test_an_option_out_of_range_is_named_with_what_was_found(folder, section, key, value):
    change_options(folder, section, **{key: value})
    message = refusal(folder)
    assert str(folder / "options.json") in message
    assert f"{section}.{key} must be" in message
    assert f"found {value!r}" in message


@pytest.mark.parametrize("share", [0, 0.3, 0.9, 0.999])
def test_a_save_to_a_full_disk_is_one_sentence_and_leaves_what_was_there(tiny_bilm, folder, tmp_path, limited, share):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    n_bytes = int(share * len(before["weights.hdf5"]))
    for where in (folder, tmp_path / "new"):
        with pytest.raises(UserError, match=rf"^{where}\S*: cannot be written \(File too large\)$"), limited(n_bytes):
            tiny_bilm.save(where)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not list((tmp_path / "new").iterdir())
    tiny_bilm.save(tmp_path / "new")
    torch.testing.assert_close(parameters(BiLM.load(tmp_path / "new")), parameters(tiny_bilm), rtol=0, atol=0)


def test_a_save_to_a_place_without_a_folder_is_one_sentence(tiny_bilm, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match=rf"^{tmp_path}/file/bilm: cannot be written \(Not a directory\)$"):
        tiny_bilm.save(tmp_path / "file" / "bilm")


def test_a_folder_of_a_bundled_name_is_that_folder(tiny_bilm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tiny_bilm.save("mini")
    assert BiLM.load(Path("mini")).digest == tiny_bilm.digest != BiLM.load("mini").digest
    bilm = {"name": "mini", "path": "mini", "state": "reset", "warm_text": None, "precision": "float32"}
    options = {"options": tiny_bilm.options.to_json()}
    assert load_encoder(bilm | options, "cpu").digest == tiny_bilm.digest
    assert load_encoder(bilm | options | {"path": None}, "cpu").digest == BiLM.load("mini").digest
