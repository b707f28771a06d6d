import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmo_tasks.encoders import cove as cove_module
from elmo_tasks.encoders.cove import CoVe
from elmo_tasks.errors import UserError
from elmo_tasks.nn.words import WordVectors

MANUAL = Path(__file__).parents[2] / "docs" / "manual.md"
DIM = 5
SENTENCES = [["the", "cat", "sat", "."], ["Paris"], ["a", "zebra", "sat"], ["the", "the"], []]


@pytest.fixture
def load(cove_files):
    """``load(n_layers=2, ...)``: CoVe from the tiny files, or from other ones."""

    def load(path=None, glove=None, dim=DIM, words_dim=DIM, n_layers=2, lowercase=False):
        words = {"path": str(glove or cove_files[1]), "dim": words_dim, "lowercase": lowercase}
        return CoVe.load(path or cove_files[0], words=words, lstm={"dim": dim, "n_layers": n_layers})

    return load


def test_a_text_in_the_place_of_a_list_of_tokens_is_refused(load):
    with pytest.raises(UserError, match="list of tokens"):
        load().layers(["the cat"])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def direction(tensors, ending, x):
    """One direction of one layer, step by step: input, forget, cell and output gate (section 3 of McCann et al.)."""
    w_ih, w_hh, b_ih, b_hh = (
        tensors[f"{name}_{ending}"].double().numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h, c, out = np.zeros(DIM), np.zeros(DIM), []
    for step in x:
        i, f, g, o = np.split(w_ih @ step + b_ih + w_hh @ h + b_hh, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.array(out)


def oracle(cove_files, sentence):
    """All layers of a sentence, ``[3, T, 10]``."""
    tensors = load_file(cove_files[0])
    vectors = {line.split()[0]: np.array(line.split()[1:], float) for line in cove_files[1].read_text().splitlines()}
    x = np.array([vectors.get(word, np.zeros(DIM)) for word in sentence])
    layers = [np.concatenate([x, x], axis=1)]
    for k in range(2):
        x = np.concatenate([direction(tensors, f"l{k}", x), direction(tensors, f"l{k}_reverse", x[::-1])[::-1]], axis=1)
        layers.append(x)
    return np.stack(layers)


def test_layers_agree_with_the_step_by_step_cell(load, cove_files):
    cove = load()
    assert (cove.n_layers, cove.dim) == (3, 2 * DIM)
    for sentence, layers in zip(SENTENCES[:4], cove.layers(SENTENCES), strict=False):
        np.testing.assert_allclose(layers.numpy(), oracle(cove_files, sentence), atol=1e-6)
    assert cove.layers([[]])[0].shape == (3, 0, 2 * DIM)


def test_order_and_batch_mates_change_nothing(load, monkeypatch):
    cove = load()
    alone = [cove.layers([sentence])[0] for sentence in SENTENCES]
    torch.testing.assert_close(cove.layers(SENTENCES), alone, atol=1e-6, rtol=0)
    torch.testing.assert_close(cove.layers(SENTENCES[::-1])[::-1], alone, atol=1e-6, rtol=0)
    monkeypatch.setattr(cove_module, "_BATCH_POSITIONS", 4)
    torch.testing.assert_close(cove.layers(SENTENCES * 2), alone * 2, atol=1e-6, rtol=0)


def test_a_word_without_a_vector_is_zero_and_is_named(load):
    cove = load()
    assert not cove.layers([["a", "zebra"]])[0][0, 1].any()
    assert cove.prepare(["a", "the"]) == ""
    assert cove.prepare(["a", "paris", "zebra"]) == "words without a vector, which are zeros: 2 of 3, such as 'paris'"


def test_a_word_is_looked_up_as_it_stands_and_in_lower_case_only_if_asked_to(load):
    words = [["The"], ["the"], ["Paris"], ["paris"]]
    exact, folded = (load(lowercase=lowercase).layers(words) for lowercase in (False, True))
    assert not exact[0][0].any()
    assert torch.equal(folded[0], folded[1])
    assert torch.equal(folded[2], exact[2])
    assert not folded[3][0].any()


def test_the_file_of_vectors_is_read_once_for_all_words_that_were_prepared(load, monkeypatch):
    cove, reads = load(), []
    lookup = WordVectors.lookup
    monkeypatch.setattr(WordVectors, "lookup", lambda self, words: reads.append(list(words)) or lookup(self, words))
    cove.prepare(word for sentence in SENTENCES for word in sentence)
    for sentence in SENTENCES:
        cove.layers([sentence])
    assert reads == [["the", "cat", "sat", ".", "Paris", "a", "zebra"]]


def test_vectors_of_other_words_alone_are_refused(load):
    with pytest.raises(
        UserError, match=r"^bilm\.options\.words\.path=.*glove\.txt: it contains none of the words in the data"
    ):
        load().prepare(["zebra", "okapi"])


def test_names_may_have_a_prefix_and_a_folder_may_hold_the_file(load, cove_files, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    tensors = {f"rnn1.{name}": value for name, value in load_file(cove_files[0]).items()}
    save_file(tensors | {"vectors.weight": torch.zeros(3, 5)}, folder / "own.safetensors")
    assert load(folder).digest == load().digest


def test_another_file_of_vectors_under_the_same_name_is_read_again(load, cove_files):
    encoder = load()
    before, digest = encoder.layers([["the"]])[0], encoder.digest
    cove_files[1].write_text(cove_files[1].read_text().replace("the ", "it ").replace("cat ", "the "))
    again = load()
    assert encoder.digest == again.digest != digest
    torch.testing.assert_close(encoder.layers([["the"]]), again.layers([["the"]]), rtol=0, atol=0)
    assert (encoder.layers([["the"]])[0] - before).abs().max() > 0.1


def test_weights_that_are_tuned_have_gradients(load):
    encoder = load()
    assert not encoder.layers(SENTENCES)[0].requires_grad
    encoder.requires_grad_(True)
    sum(layers.square().sum() for layers in encoder.layers(SENTENCES)).backward()
    name, parameter = "lstms.0.left_to_right.weight_ih_l0", encoder.lstms[0].left_to_right.weight_ih_l0
    step, values = 1e-2, []
    for sign in (1, -1):
        with torch.no_grad():
            parameter[3, 2] += sign * step
            values.append(sum(layers.double().square().sum() for layers in encoder.layers(SENTENCES)))
            parameter[3, 2] -= sign * step
    assert parameter.grad[3, 2] == pytest.approx(float(values[0] - values[1]) / (2 * step), rel=0.02), name


def test_the_digest_covers_weights_vectors_and_options(load, cove_files, tmp_path):
    tensors = load_file(cove_files[0])
    tensors["bias_hh_l1_reverse"][0] += 1e-3
    save_file(tensors, tmp_path / "other.safetensors")
    glove = tmp_path / "other.txt"
    glove.write_text(cove_files[1].read_text() + "zebra 1 2 3 4 5\n")
    one_layer = {name: value for name, value in load_file(cove_files[0]).items() if "_l0" in name}
    save_file(one_layer, tmp_path / "one.safetensors")
    digests = [
        load().digest,
        load(tmp_path / "other.safetensors").digest,
        load(glove=glove).digest,
        load(lowercase=True).digest,
        load(tmp_path / "one.safetensors", n_layers=1).digest,
    ]
    assert len(set(digests)) == len(digests)
    moved = tmp_path / "moved.txt"
    moved.write_text(cove_files[1].read_text())
    assert load(glove=moved).digest == digests[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("bias_ih_l1"), r"tensor 'bias_ih_l1' is missing; bilm\.options\.lstm\.dim=5 and .*n_layers=2"),
        (
            lambda t: t.update({"weight_hh_l0": torch.zeros(24, 6)}),
            r"'weight_hh_l0' has shape \(24, 6\), but bilm\.options\.lstm\.dim=5 .* ask for \(20, 5\)",
        ),
        (lambda t: t["weight_ih_l1_reverse"].fill_(torch.nan), r"'weight_ih_l1_reverse' holds values that are not fin"),
        (lambda t: t.update({"weight_ih_l2": torch.zeros(2)}), r"holds 'weight_ih_l2', for which .* have no place"),
        (lambda t: t.update({"rnn.bias_ih_l0": torch.zeros(2)}), r"two tensors are named 'bias_ih_l0'"),
    ],
)
def test_weights_that_do_not_fit_are_named(load, cove_files, change, message):
    tensors = load_file(cove_files[0])
    change(tensors)
    save_file(tensors, cove_files[0])
    with pytest.raises(UserError, match=rf"cove\.safetensors: {message}"):
        load()


def test_sizes_that_contradict_each_other_are_named(load):
    with pytest.raises(UserError, match=r"bilm\.options\.words\.dim=4 and bilm\.options\.lstm\.dim=5 must be the same"):
        load(words_dim=4)
    with pytest.raises(UserError, match=r"^bilm\.options\.lstm\.n_layers must be a whole number .* found 0"):
        load(n_layers=0)
    words = WordVectors(name="glove", path=load().words.path, dim=6, lowercase=False, key="bilm.options.words")
    with pytest.raises(UserError, match=r"glove\.txt:1: expected a word and 6 numbers \(bilm\.options\.words\.dim=6\)"):
        CoVe(words, dim=6).layers([["the"]])


def test_files_that_are_missing_or_damaged_are_named(load, cove_files, tmp_path):
    with pytest.raises(UserError, match=r"^bilm\.path=.*nowhere: no such file; expected weights as \.safetensors"):
        load(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"^bilm\.options\.words\.path=.*none\.txt: no such file"):
        load(glove=tmp_path / "none.txt")
    with pytest.raises(UserError, match=r"set bilm\.options\.words\.path to its text file"):
        CoVe.load(cove_files[0], words={"path": None, "dim": 5, "lowercase": False}, lstm={"dim": 5, "n_layers": 2})
    (tmp_path / "damaged.safetensors").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"damaged\.safetensors: damaged or not a safetensors file"):
        load(tmp_path / "damaged.safetensors")
    with pytest.raises(UserError, match=r"exactly one file \*\.safetensors, found cove\.safetensors, damaged"):
        load(tmp_path)


def test_a_pickle_is_refused_and_the_command_of_the_manual_converts_it(load, cove_files, tmp_path, monkeypatch):
    # the published file's tensors are views of one buffer
    tensors = load_file(cove_files[0])
    flat = torch.cat([value.flatten() for value in tensors.values()])
    parts = flat.split([value.numel() for value in tensors.values()])
    views = {name: part.view(tensors[name].shape) for name, part in zip(tensors, parts, strict=True)}
    torch.save(views, tmp_path / "wmtlstm.pth")
    with pytest.raises(UserError, match=r"wmtlstm\.pth: .* a pickle .* docs/manual.md, section 'Other encoders'"):
        load(tmp_path / "wmtlstm.pth")
    (command,) = re.findall(r'^python -c "(.*torch\.load.*)"$', MANUAL.read_text("utf-8"), flags=re.MULTILINE)
    expected = load().digest
    cove_files[0].unlink()
    monkeypatch.chdir(tmp_path)
    exec(command.replace("wmtlstm-8f474287.pth", "wmtlstm.pth"))
    assert load(tmp_path / "cove.safetensors").digest == expected


def test_word_vectors_of_unit_length_are_another_encoder(cove_files):
    words = {"path": str(cove_files[1]), "dim": DIM, "lowercase": False}
    plain, scaled = (
        CoVe.load(cove_files[0], words=words | more, lstm={"dim": DIM, "n_layers": 2})
        for more in ({}, {"unit_length": True})
    )
    assert (plain.layers([["cat"]])[0][0] - scaled.layers([["cat"]])[0][0]).abs().max() > 0.01
    assert plain.digest != scaled.digest
