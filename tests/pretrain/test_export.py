import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.data.corpus import LmVocabulary
from elmo_tasks.errors import UserError
from elmo_tasks.places import bundled_folder
from elmo_tasks.pretrain.export import (
    SOFTMAX,
    VOCABULARY,
    read_initial_weights,
    write_bilm,
    write_vocabulary,
)
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.tensors import check_weights

WORDS = ["<S>", "</S>", "<UNK>", "a", "b", "c", "日本"]


@pytest.fixture
def model(tiny_options, shake):
    return shake(LanguageModel(bilm=BiLM(tiny_options), vocabulary_size=len(WORDS), n_samples=3, dropout=0.0))


@pytest.fixture
def folder(model, tmp_path):
    """What a run leaves: its weights, and beside them the biLM with its softmax."""
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    write_vocabulary(LmVocabulary(WORDS), tmp_path / "bilm")
    write_bilm(model, tmp_path / "bilm")
    return tmp_path


def fresh(options):
    return LanguageModel(bilm=BiLM(options), vocabulary_size=len(WORDS), n_samples=3, dropout=0.0)


def test_the_folder_of_a_run_holds_bilm_words_and_softmax(folder, model):
    assert {path.name for path in (folder / "bilm").iterdir()} == {"options.json", "weights.hdf5", VOCABULARY, SOFTMAX}
    assert (folder / "bilm" / VOCABULARY).read_text("utf-8").split("\n") == [*WORDS, ""]
    assert write_bilm(model, folder / "bilm") == BiLM.load(folder / "bilm").digest != model.bilm.digest


@pytest.mark.parametrize(("where", "rounding"), [("model.safetensors", 0), ("bilm", 2**-11)])
def test_an_earlier_run_gives_every_weight_and_the_words(folder, model, tiny_options, where, rounding):
    start = read_initial_weights(str(folder / where), tiny_options)
    assert start.grown == ""
    assert start.vocabulary.words == WORDS
    found = fresh(tiny_options)
    start.put_into(found)
    for name, value in model.state_dict().items():
        if name == "bilm.encoder.characters":
            value = torch.cat([torch.zeros_like(value[:1]), value[1:]]) if rounding else value
        torch.testing.assert_close(found.state_dict()[name], value, rtol=rounding, atol=1e-7, msg=name)


def test_without_a_stored_softmax_the_model_keeps_its_own(folder, model, tiny_options):
    (folder / "bilm" / SOFTMAX).unlink()
    start = read_initial_weights(str(folder / "bilm"), tiny_options)
    assert start.vocabulary is None
    found = fresh(tiny_options)
    before = {name: value.clone() for name, value in found.state_dict().items()}
    start.put_into(found)
    changed = {name for name, value in found.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {name for name in before if name.startswith("bilm.")}


def test_another_weight_or_word_is_another_digest(folder, tiny_options):
    path = folder / "model.safetensors"
    digests = {read_initial_weights(str(path), tiny_options).digest}
    weights = load_file(path)
    weights["softmax_bias"][3] += 1e-6
    save_file(weights, path)
    digests.add(read_initial_weights(str(path), tiny_options).digest)
    write_vocabulary(LmVocabulary([*WORDS[:-1], "d"]), folder / "bilm")
    digests.add(read_initial_weights(str(path), tiny_options).digest)
    assert len(digests) == 3


def refusal(where, options):
    with pytest.raises(UserError) as caught:
        read_initial_weights(str(where), options)
    return str(caught.value)


@pytest.mark.parametrize("where", ["model.safetensors", "bilm"])
def test_a_start_of_another_size_is_refused_with_what_would_fit(folder, where):
    options = BiLMOptions(filters=((1, 4), (2, 8), (3, 8)), character_dim=4, n_highway=1, dim=10, projection_dim=6)
    message = refusal(folder / where, options)
    pairs = {"bilm": ("add bilm.options.lstm.dim=12 (",), "model.safetensors": ("(2, 12, 48)", "(2, 12, 40)")}
    assert all(size in message for size in pairs[where]), message


def test_a_larger_bilm_starts_with_the_same_outputs(folder, model, tiny_options):
    options = replace(tiny_options, dim=20)
    start = read_initial_weights(str(folder / "bilm"), options)
    assert start.grown == "from dim=12 to dim=20"
    larger = fresh(options)
    start.put_into(larger)
    hidden = torch.rand(2, 3, 2, 6)
    states = [each.bilm.initial_states(2) for each in (model, larger)]
    outs = [each.eval().read(hidden, state)[0] for each, state in zip((model, larger), states, strict=True)]
    torch.testing.assert_close(outs[1], outs[0], rtol=0, atol=2e-3)  # the file rounds to 16 bits
    torch.testing.assert_close(larger.softmax_weight, model.softmax_weight, rtol=2**-11, atol=1e-7)


def test_words_that_are_not_those_of_the_softmax_are_refused_with_both_sizes(folder, tiny_options):
    write_vocabulary(LmVocabulary(WORDS[:-1]), folder / "bilm")
    for where in ("model.safetensors", "bilm"):
        message = refusal(folder / where, tiny_options)
        assert "softmax_weight is (7, 6), but this model's is (6, 6)" in message


def test_weights_without_their_words_are_refused(folder, tiny_options):
    (folder / "bilm" / VOCABULARY).unlink()
    for where in ("model.safetensors", "bilm"):
        assert "vocabulary.txt: no such file" in refusal(folder / where, tiny_options)


def test_a_softmax_of_whole_numbers_is_refused(folder, model, tiny_options):
    weights = model.state_dict() | {"softmax_bias": torch.ones(len(WORDS), dtype=torch.int32)}
    save_file(weights, folder / "model.safetensors")
    save_file({name: weights[name] for name in ("softmax_weight", "softmax_bias")}, folder / "bilm" / SOFTMAX)
    for where in ("model.safetensors", "bilm"):
        assert "softmax_bias is of torch.int32, but this model's is of torch.float32" in refusal(
            folder / where, tiny_options
        )


def test_what_is_missing_or_damaged_is_named(folder, tiny_options):
    assert refusal(folder / "none", tiny_options).startswith(f"task.lm.init={folder / 'none'}: no such folder")
    assert "none.safetensors: cannot be read (no such file" in refusal(folder / "none.safetensors", tiny_options)
    (folder / "bilm" / SOFTMAX).write_bytes(b"nothing")
    assert f"{SOFTMAX}: damaged or not a safetensors file" in refusal(folder / "bilm", tiny_options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("bias"), r"x: weights of another model: bias is missing"),
        (lambda weights: weights.update(other=torch.ones(1)), r"x: weights of another model: this model has no other"),
        (lambda weights: weights.update(bias=torch.ones(3)), r"bias is \(3,\), but this model's is \(2,\)"),
        (lambda weights: weights.update(bias=torch.tensor([1.0, np.nan])), r"bias holds values that are not finite"),
        (lambda weights: weights.update(bias=torch.ones(2).long()), r"bias is of torch.int64, but .* of torch.float32"),
    ],
)
def test_weights_of_another_model_are_refused(tmp_path, change, message):
    model = torch.nn.Linear(4, 2)
    weights = dict(model.state_dict())
    check_weights(model, weights, tmp_path / "x")
    change(weights)
    with pytest.raises(UserError, match=message):
        check_weights(model, weights, tmp_path / "x")


def test_the_sizes_of_the_bundled_bilm_are_those_of_its_configuration(repo_options):
    start = read_initial_weights("mini", repo_options)
    assert start.vocabulary is not None
    assert len(start.vocabulary) == 50_000
    assert start.weights["bilm.lstms.0.w_projection"].shape == (2, 512, 128)
    assert start.weights["softmax_weight"].shape == (50_000, 128)


@pytest.mark.parametrize(("name", "word"), [("mini", "the"), ("mini_ko", "영화")])
def test_the_bundled_bilms_come_with_the_words_that_they_predict(repo_options, name, word):
    vocabulary = read_initial_weights(name, repo_options).vocabulary
    assert vocabulary is not None
    assert word in vocabulary.words


def test_a_bundled_bilm_from_a_wheel_has_no_softmax_and_is_a_start_too(tmp_path, repo_options):
    for name in ("options.json", "weights.hdf5", "vocabulary.txt"):
        shutil.copy(bundled_folder("mini_ko") / name, tmp_path)
    assert read_initial_weights(str(tmp_path), repo_options).vocabulary is None


@pytest.fixture
def repo_options():
    from omegaconf import OmegaConf

    from elmo_tasks.config.compose import TASKS

    raw = OmegaConf.to_container(OmegaConf.load(TASKS.parent / "bilm" / "mini.yaml").options)
    return BiLMOptions.from_json(json.loads(json.dumps(raw)))
