import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_tasks.nn.gru import BiGRU

SHAPES = pytest.mark.parametrize(
    ("lengths", "n_columns"),
    [
        pytest.param([2, 5, 1, 5, 3], 5, id="ragged and unsorted"),
        pytest.param([4, 3, 1], 4, id="longest first"),
        pytest.param([4], 4, id="one text"),
        pytest.param([1, 1, 1], 1, id="one word each"),
        pytest.param([1], 1, id="one word"),
        pytest.param([3, 3, 3], 3, id="one length"),
        pytest.param([3, 1, 2], 6, id="no text reaches the last columns"),
    ],
)
EXACT = pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])


def texts(lengths, n_columns, dtype=torch.float32):
    """Random texts with garbage in the padding, and their mask."""
    x = torch.randn(len(lengths), n_columns, 3, dtype=dtype, requires_grad=True)
    return x, torch.arange(n_columns) < torch.tensor(lengths).unsqueeze(1)


def torchs_own(layer, x, mask):
    packed = pack_padded_sequence(x, mask.sum(dim=1), batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(layer.gru(packed)[0], batch_first=True, total_length=x.shape[1])[0]


def gradients(layer, out, *inputs, seed=5):
    """Of a weighted sum of the output; the weights on padding must not matter."""
    weights = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(seed))
    named = {f"input {k}": x for k, x in enumerate(inputs)} | dict(layer.named_parameters())
    found = torch.autograd.grad((out * weights).sum(), list(named.values()), retain_graph=True)
    return dict(zip(named, found, strict=True))


def step_by_step(x, gru, suffix):
    """One direction of a GRU over an unpadded text (Cho et al.'s equations, the reset gate after the product)."""
    w_in, w_h, b_in, b_h = (
        getattr(gru, f"{name}_l0{suffix}").detach().double().numpy()
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = np.zeros(gru.hidden_size)
    out = []
    for step in x:
        input_part, state_part = np.split(w_in @ step + b_in, 3), np.split(w_h @ h + b_h, 3)
        r, z = (1 / (1 + np.exp(-(a + b))) for a, b in zip(input_part[:2], state_part[:2], strict=True))
        h = (1 - z) * np.tanh(input_part[2] + r * state_part[2]) + z * h
        out.append(h)
    return np.array(out)


@EXACT
@SHAPES
def test_outputs_and_all_gradients_are_those_of_torchs_own_layer(shake, lengths, n_columns, dtype, atol):
    layer = shake(BiGRU(3, 4).to(dtype))
    x, mask = texts(lengths, n_columns, dtype)
    out, expected = layer(x, mask), torchs_own(layer, x, mask)
    assert out.dtype == dtype
    torch.testing.assert_close(out, expected, atol=atol, rtol=atol)
    torch.testing.assert_close(gradients(layer, out, x), gradients(layer, expected, x), atol=atol, rtol=atol)


@SHAPES
def test_each_text_is_read_alone_by_the_equations_of_a_gru(shake, lengths, n_columns):
    layer = shake(BiGRU(3, 4))
    assert layer.dim == 8
    x, mask = texts(lengths, n_columns)
    out = layer(x, mask).detach().numpy()
    assert out.shape == (len(lengths), n_columns, 8)
    for row, text, n in zip(out, x.detach().double().numpy(), lengths, strict=True):
        forward = step_by_step(text[:n], layer.gru, "")
        backward = step_by_step(text[:n][::-1], layer.gru, "_reverse")[::-1]
        np.testing.assert_allclose(row[:n], np.concatenate([forward, backward], axis=1), atol=1e-5)


@SHAPES
def test_padding_comes_out_as_zeros_gets_no_gradient_and_has_no_influence(shake, lengths, n_columns):
    layer = shake(BiGRU(3, 4))
    x, mask = texts(lengths, n_columns)
    out = layer(x, mask)
    found = gradients(layer, out, x)
    assert not out[~mask].any()
    assert not found["input 0"][~mask].any()
    assert found["input 0"][mask].all()
    other = x.detach().masked_fill(~mask.unsqueeze(2), 1000.0).requires_grad_()
    out_of_other = layer(other, mask)
    assert torch.equal(out_of_other, out)
    torch.testing.assert_close(gradients(layer, out_of_other, other), found, atol=0, rtol=0)


def test_nothing_is_recorded_without_gradients(shake):
    layer = shake(BiGRU(3, 4))
    x, mask = texts([2, 5, 1], 5)
    with torch.no_grad():
        out = layer(x, mask)
    assert not out.requires_grad
    assert torch.equal(out, layer(x, mask))


def test_frozen_parameters_and_inputs_work(shake):
    layer = shake(BiGRU(3, 4))
    x, mask = texts([2, 3], 3)
    expected = gradients(layer, torchs_own(layer, x, mask), x)
    found = gradients(layer, layer(x.detach(), mask))
    torch.testing.assert_close(found, {name: expected[name] for name in found}, atol=1e-5, rtol=1e-5)
    layer.requires_grad_(False)
    weights = torch.randn((2, 3, 8), generator=torch.Generator().manual_seed(5))
    (x_grad,) = torch.autograd.grad((layer(x, mask) * weights).sum(), x)
    torch.testing.assert_close(x_grad, expected["input 0"], atol=1e-5, rtol=1e-5)


@EXACT
def test_gradients_of_two_texts_through_one_layer_add_up(shake, dtype, atol):
    layer = shake(BiGRU(3, 4).to(dtype))
    question, question_mask = texts([2, 1], 2, dtype)
    context, context_mask = texts([4, 6], 6, dtype)

    def together(read):
        q, c = read(question, question_mask), read(context, context_mask)
        return torch.einsum("bqh,bth->bqt", q, c)

    found = gradients(layer, together(layer), question, context)
    expected = gradients(layer, together(lambda x, mask: torchs_own(layer, x, mask)), question, context)
    torch.testing.assert_close(found, expected, atol=10 * atol, rtol=10 * atol)


def test_a_second_pass_back_through_the_same_graph_adds_the_same_gradients(shake):
    layer = shake(BiGRU(3, 4))
    x, mask = texts([2, 5, 1], 5)
    out = layer(x, mask).square().sum()
    out.backward(retain_graph=True)
    once = {name: p.grad.clone() for name, p in layer.named_parameters()}
    out.backward()
    torch.testing.assert_close(
        {name: p.grad for name, p in layer.named_parameters()}, {k: 2 * g for k, g in once.items()}
    )


def test_under_autocast_the_states_stay_in_full_precision(shake):
    layer = shake(BiGRU(3, 4), std=0.3)
    x, mask = texts([2, 5, 1], 6)
    expected = layer(x, mask)
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(x, mask)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, expected, atol=2e-2, rtol=0)
    found = gradients(layer, out, x)
    assert {g.dtype for g in found.values()} == {torch.float32}
    torch.testing.assert_close(found, gradients(layer, expected, x), atol=2e-2, rtol=5e-2)
