import pytest
import torch

from elmo_tasks.errors import UserError
from elmo_tasks.nn.highway_lstm import AlternatingLSTM, HighwayLSTM
from elmo_tasks.nn.packing import Packing

SHAPES = pytest.mark.parametrize(
    ("lengths", "n_columns"),
    [
        pytest.param([2, 5, 1, 5, 3], 5, id="ragged and unsorted"),
        pytest.param([4], 4, id="one text"),
        pytest.param([1, 1, 1], 1, id="one word each"),
        pytest.param([3, 3, 3], 3, id="one length"),
        pytest.param([3, 1, 2], 6, id="no text reaches the last columns"),
    ],
)
LAYERS = pytest.mark.parametrize("n_layers", [1, 2, 3, 4])
EXACT = pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])


def texts(lengths, n_columns, dtype=torch.float32):
    """Random texts with garbage in the padding, and their mask."""
    x = torch.randn(len(lengths), n_columns, 3, dtype=dtype, requires_grad=True)
    return x, torch.arange(n_columns) < torch.tensor(lengths).unsqueeze(1)


def step_by_step(layer, x, keep=None):
    """One layer over the words of one text in reading order."""
    h = c = x.new_zeros(len(layer.highway))
    out = []
    for word in x:
        input_part, highway = (layer.input_weight @ word).chunk(5), layer.highway @ word
        i, f, o, r, g = (
            a + b + bias
            for a, b, bias in zip(input_part, (layer.hidden_weight @ h).chunk(5), layer.bias.chunk(5), strict=True)
        )
        c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
        h = torch.sigmoid(r) * torch.sigmoid(o) * torch.tanh(c) + (1 - torch.sigmoid(r)) * highway
        h = h if keep is None else h * keep
        out.append(h)
    return torch.stack(out)


def text_by_text(model, x, mask):
    """All layers over each text alone, every second one from its end; zeros on padding."""
    out = x.new_zeros(*mask.shape, model.dim)
    for row, n in enumerate(mask.sum(dim=1).tolist()):
        text = x[row, :n]
        for k, layer in enumerate(model.layers):
            text = step_by_step(layer, text.flip(0)).flip(0) if k % 2 else step_by_step(layer, text)
        out[row, :n] = text
    return out


def gradients(module, out, *inputs, seed=5):
    """Of a weighted sum of the output; the weights on padding must not matter."""
    weights = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(seed))
    named = {f"input {k}": x for k, x in enumerate(inputs)} | dict(module.named_parameters())
    found = torch.autograd.grad((out * weights).sum(), list(named.values()), retain_graph=True)
    return dict(zip(named, found, strict=True))


@EXACT
@LAYERS
@SHAPES
def test_outputs_and_all_gradients_are_those_of_steps_one_after_the_other(
    shake, lengths, n_columns, n_layers, dtype, atol
):
    model = shake(AlternatingLSTM(3, 4, n_layers, dropout=0.0).to(dtype))
    x, mask = texts(lengths, n_columns, dtype)
    out, expected = model(x, mask), text_by_text(model, x, mask)
    assert out.dtype == dtype
    assert out.shape == (len(lengths), n_columns, 4)
    torch.testing.assert_close(out, expected, atol=atol, rtol=atol)
    torch.testing.assert_close(gradients(model, out, x), gradients(model, expected, x), atol=atol, rtol=atol)


@EXACT
@pytest.mark.parametrize("lengths", [[5, 5, 3, 2, 1], [4], [1, 1]], ids=str)
def test_a_dropout_mask_is_on_the_state_that_goes_out_and_on_to_the_next_step(shake, lengths, dtype, atol):
    layer = shake(HighwayLSTM(3, 4).to(dtype))
    x, _ = texts(lengths, max(lengths), dtype)
    keep = 2 * torch.rand(len(lengths), 4, dtype=dtype) * (torch.rand(len(lengths), 4) < 0.7)
    packing = Packing.from_lengths(lengths)
    packed = (packing.rows, packing.positions[0])
    out = layer(x[packed], packing.batch_sizes, keep)
    apart = [step_by_step(layer, text[:n], row) for text, n, row in zip(x, lengths, keep, strict=True)]
    expected = torch.nn.utils.rnn.pad_sequence(apart, batch_first=True)[packed]
    torch.testing.assert_close(out, expected, atol=atol, rtol=atol)
    torch.testing.assert_close(gradients(layer, out, x), gradients(layer, expected, x), atol=atol, rtol=atol)


@LAYERS
@SHAPES
def test_padding_comes_out_as_zeros_gets_no_gradient_and_has_no_influence(shake, lengths, n_columns, n_layers):
    model = shake(AlternatingLSTM(3, 4, n_layers, dropout=0.0))
    x, mask = texts(lengths, n_columns)
    out = model(x, mask)
    found = gradients(model, out, x)
    assert not out[~mask].any()
    assert not found["input 0"][~mask].any()
    assert found["input 0"][mask].all()
    for garbage in (1000.0, float("nan")):
        other = x.detach().masked_fill(~mask.unsqueeze(2), garbage).requires_grad_()
        out_of_other = model(other, mask)
        assert torch.equal(out_of_other, out)
        torch.testing.assert_close(gradients(model, out_of_other, other), found, atol=0, rtol=0)


@LAYERS
def test_each_layer_reads_what_the_one_before_wrote_last_first(shake, n_layers):
    model = shake(AlternatingLSTM(3, 4, n_layers, dropout=0.0))
    x, mask = texts([6], 6)
    passed = []
    for layer in model.layers:
        layer.register_forward_hook(lambda _, args, out: passed.append((args[0], out)))
    out = model(x, mask)
    read, written = zip(*passed, strict=True)
    assert torch.equal(read[0], x[0])
    assert all(torch.equal(a, b.flip(0)) for a, b in zip(read[1:], written, strict=False))
    assert torch.equal(out[0], written[-1] if n_layers % 2 else written[-1].flip(0))


@LAYERS
def test_no_texts_are_no_output(n_layers):
    model = AlternatingLSTM(3, 4, n_layers, dropout=0.5)
    assert model(torch.zeros(0, 5, 3), torch.ones(0, 5, dtype=torch.bool)).shape == (0, 5, 4)


@pytest.mark.parametrize("n_layers", [1, 2])
def test_the_first_layer_sees_no_word_to_the_right_and_two_layers_see_all(shake, n_layers):
    model = shake(AlternatingLSTM(3, 4, n_layers, dropout=0.0))
    x, mask = texts([2, 5], 5)
    (x_grad,) = torch.autograd.grad(model(x, mask)[1, 2].sum(), x)
    assert x_grad[1].any(dim=1).tolist() == [True] * 3 + [n_layers == 2] * 2
    assert not x_grad[0].any()


@pytest.mark.parametrize("input_dim", [3, 5, 9])
def test_weights_begin_orthogonal_gate_by_gate_and_only_the_forget_gate_has_a_bias(input_dim):
    layer = HighwayLSTM(input_dim, 5)
    assert (len(layer.input_weight), len(layer.hidden_weight), len(layer.highway)) == (5 * 5, 5 * 5, 5)
    for gate in (layer.highway.detach(), *layer.input_weight.detach().split(5), *layer.hidden_weight.detach().split(5)):
        rows = gate if len(gate) <= gate.shape[1] else gate.T
        torch.testing.assert_close(rows @ rows.T, torch.eye(len(rows)), atol=1e-5, rtol=0)
    assert len({tuple(gate.flatten().tolist()) for gate in layer.hidden_weight.split(5)}) == 5
    assert layer.bias.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 15


def test_a_cell_that_is_dropped_is_dropped_at_all_steps_of_a_text_but_not_in_all_texts(shake):
    model = shake(AlternatingLSTM(3, 32, 1, dropout=0.5), std=0.3)
    lengths = [2, 7, 4, 7]
    x, mask = texts(lengths, 7)
    dropped = [row[:n] == 0 for row, n in zip(model(x, mask), lengths, strict=True)]
    assert all((steps == steps[0]).all() for steps in dropped)
    assert len({tuple(steps[0].tolist()) for steps in dropped}) == 4
    assert sum(int(steps[0].sum()) for steps in dropped) == pytest.approx(64, abs=20)


def test_each_layer_and_each_pass_draws_a_mask_that_keeps_the_mean(shake):
    model = shake(AlternatingLSTM(3, 400, 2, dropout=0.2), std=0.02)
    masks = []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda _, args: masks.append(args[2]))
    for _ in range(2):
        model(*texts([1, 2], 2))
    assert len({tuple(row.tolist()) for mask in masks for row in mask}) == 2 * 2 * 2
    for mask in masks:
        assert mask.shape == (2, 400)
        assert set(mask.flatten().tolist()) == {0.0, 1.25}
        assert mask.mean() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(("training", "dropout"), [(False, 0.5), (True, 0.0)])
def test_nothing_is_dropped_in_evaluation_or_at_rate_zero(shake, training, dropout):
    model = shake(AlternatingLSTM(3, 4, 2, dropout=dropout)).train(training)
    x, mask = texts([2, 5], 5)
    torch.testing.assert_close(model(x, mask), text_by_text(model, x, mask), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_value_that_is_not_a_rate_is_refused(rate):
    with pytest.raises(UserError, match=f"a dropout rate of {rate}: expected a number from 0 to below 1"):
        AlternatingLSTM(3, 4, 1, dropout=rate)


def test_a_second_pass_back_through_the_same_graph_adds_the_same_gradients(shake):
    model = shake(AlternatingLSTM(3, 4, 2, dropout=0.5))
    out = model(*texts([2, 5, 1], 5)).square().sum()
    out.backward(retain_graph=True)
    once = {name: p.grad.clone() for name, p in model.named_parameters()}
    out.backward()
    torch.testing.assert_close(
        {name: p.grad for name, p in model.named_parameters()}, {k: 2 * g for k, g in once.items()}
    )


def test_frozen_parameters_and_inputs_work(shake):
    model = shake(AlternatingLSTM(3, 4, 2, dropout=0.0))
    x, mask = texts([2, 3], 3)
    expected = gradients(model, text_by_text(model, x, mask), x)
    found = gradients(model, model(x.detach(), mask))
    torch.testing.assert_close(found, {name: expected[name] for name in found}, atol=1e-5, rtol=1e-5)
    model.requires_grad_(False)
    weights = torch.randn((2, 3, 4), generator=torch.Generator().manual_seed(5))
    (x_grad,) = torch.autograd.grad((model(x, mask) * weights).sum(), x)
    torch.testing.assert_close(x_grad, expected["input 0"], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("input_dim", "hidden"), [(3, 4), (40, 64)])
def test_under_autocast_the_states_stay_in_full_precision(shake, input_dim, hidden):
    model = shake(AlternatingLSTM(input_dim, hidden, 2, dropout=0.0), std=0.5 / hidden**0.5)
    x, mask = torch.randn(3, 6, input_dim, requires_grad=True), torch.arange(6) < torch.tensor([[2], [5], [1]])
    expected = model(x, mask)
    with torch.autocast("cpu", torch.bfloat16):
        out = model(x, mask)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, expected, atol=2e-2, rtol=0)
    found = gradients(model, out, x)
    assert {g.dtype for g in found.values()} == {torch.float32}
