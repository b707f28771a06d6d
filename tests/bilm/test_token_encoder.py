import string

import numpy as np
import pytest
import torch

import elmo_tasks.bilm.token_encoder as encoder_module
from elmo_tasks.bilm.token_encoder import TokenEncoder

FILTERS = [(1, 4), (2, 8), (5, 6)]
N_FILTERS = 18


def make_word(n_bytes):
    head = "é日" if n_bytes >= 5 else ""
    letters = string.ascii_letters[n_bytes % 26 :] * 3
    return head + letters[: n_bytes - len(head.encode())]


WORDS = [make_word(n) for n in range(1, 61)]


def make(shake, n_highway=2, projection_dim=7, **options):
    sizes = {"n_highway": n_highway, "projection_dim": projection_dim}
    encoder = TokenEncoder(filters=FILTERS, embedding_dim=3, **sizes, **options)
    return shake(encoder).double().requires_grad_(False)


@pytest.fixture
def encoder(shake):
    return make(shake)


def oracle(encoder, word, activation="relu", most=50):
    characters = encoder.characters.numpy()
    inner = {"<S>": [256], "</S>": [257]}.get(word, list(word.encode()[: most - 2]))
    ids = [258, *inner, 259]
    ids += [260] * (most - len(ids))
    x = characters[np.array(ids) + 1]
    features = []
    for (width, count), kernel in zip(encoder.filters, encoder.kernels, strict=True):
        kernel = kernel.numpy().reshape(width, x.shape[1], count)
        for k in range(count):
            features.append(max((x[p : p + width] * kernel[:, :, k]).sum() for p in range(most - width + 1)))
    h = np.array(features) + encoder.kernel_bias.numpy()
    h = np.tanh(h) if activation == "tanh" else np.maximum(h, 0)
    for highway in encoder.highways:
        transform, carry = (
            layer.weight.numpy() @ h + layer.bias.numpy() for layer in (highway.transform, highway.carry)
        )
        gate = 1 / (1 + np.exp(-carry))
        h = gate * np.maximum(transform, 0) + (1 - gate) * h
    if isinstance(encoder.projection, torch.nn.Linear):
        h = encoder.projection.weight.numpy() @ h + encoder.projection.bias.numpy()
    return h


@pytest.mark.parametrize(("activation", "most"), [("tanh", 50), ("relu", 10), ("tanh", 55), ("relu", 70)])
def test_another_activation_and_other_lengths_of_a_word_agree_too(shake, activation, most):
    encoder = make(shake, activation=activation, max_characters=most)
    words = ["<S>", "</S>", *WORDS]
    expected = np.stack([oracle(encoder, word, activation, most) for word in words])
    np.testing.assert_allclose(encoder.encode(words).numpy(), expected, atol=1e-10)


def test_words_of_1_to_60_bytes_agree_with_the_full_50_character_convolution(encoder):
    words = ["<S>", "</S>", *WORDS]
    expected = np.stack([oracle(encoder, word) for word in words])
    np.testing.assert_allclose(encoder.encode(words).numpy(), expected, atol=1e-10)


def test_a_single_word_agrees_with_the_oracle_too(encoder):
    for word in ("a", "a" * 43, "a" * 48):
        np.testing.assert_allclose(encoder.encode([word])[0].numpy(), oracle(encoder, word), atol=1e-10)


def test_without_projection_the_highway_output_is_the_vector(shake):
    encoder = make(shake, n_highway=1, projection_dim=N_FILTERS)
    assert not list(encoder.projection.parameters())
    np.testing.assert_allclose(encoder.encode(["word"])[0].numpy(), oracle(encoder, "word"), atol=1e-10)


def test_chunks_of_words_change_nothing(encoder, monkeypatch):
    words = WORDS[::-1]
    whole = encoder.encode(words)
    monkeypatch.setattr(encoder_module, "_CHUNK_FLOATS", 2_000)
    sizes = []
    inner = encoder.convolve
    monkeypatch.setattr(encoder, "convolve", lambda ids: sizes.append(ids.shape) or inner(ids))
    torch.testing.assert_close(encoder.encode(words), whole, rtol=0, atol=1e-10)
    assert sum(rows for rows, _ in sizes) == len(words)
    assert len(sizes) > 10
    assert all(rows == 1 or rows * width * N_FILTERS <= 2_000 for rows, width in sizes)


def test_a_word_keeps_its_vector_among_other_words(encoder):
    alone = encoder.encode(["cat"])[0]
    for others in (["a"], ["a" * 60], WORDS):
        torch.testing.assert_close(encoder.encode([*others, "cat", *others])[len(others)], alone, rtol=0, atol=1e-10)


def test_a_wider_table_changes_nothing(encoder):
    ids = torch.full((1, 50), 261)
    ids[0, :5] = torch.tensor([259, 100, 98, 117, 260])
    torch.testing.assert_close(encoder(ids), encoder.encode(["cat"]), rtol=0, atol=1e-10)


def test_no_words_give_no_vectors(encoder):
    assert encoder.encode([]).shape == (0, 7)


def test_every_parameter_but_the_unused_embeddings_gets_a_gradient(encoder):
    encoder.requires_grad_(True)
    encoder.encode(WORDS).square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in encoder.parameters())
    assert encoder.characters.grad[0].abs().sum() == 0  # the row for "no word here" is never met
