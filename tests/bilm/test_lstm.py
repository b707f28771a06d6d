import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

from elmo_tasks.bilm.lstm import ProjectedLSTM
from elmo_tasks.nn import linear

N_IN, H, P = 5, 4, 3
BATCH_SIZES = [4, 4, 3, 1, 1]
LENGTHS = [5, 3, 3, 2]  # of each row, as BATCH_SIZES say
CLIPS = {"cell_clip": 0.6, "proj_clip": 0.3}


@pytest.fixture(params=[P, H], ids=["projected", "as it is"])
def lstm(request, shake):
    return shake(ProjectedLSTM(input_dim=N_IN, dim=H, projection_dim=request.param, **CLIPS)).double()


@pytest.fixture
def x():
    return torch.randn(2, sum(BATCH_SIZES), N_IN, dtype=torch.float64)


@pytest.fixture
def state(lstm):
    return 0.2 * torch.randn(2, 4, lstm.projection_dim, dtype=torch.float64), 0.5 * torch.randn(
        2, 4, H, dtype=torch.float64
    )


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def oracle(lstm, x, lengths, state):
    """TensorFlow's LSTMCell, one row and one step at a time; also how often a value lay beyond each clip."""
    weight, bias = lstm.weight.detach().numpy(), lstm.bias.detach().numpy()
    out = np.zeros((2, sum(lengths), lstm.projection_dim))
    hidden, cell = (part.numpy().copy() for part in state)
    cuts = {"cell": 0, "projection": 0}
    for direction in (0, 1):
        for row, length in enumerate(lengths):
            for step in range(length):
                place = sum(min(n, step) for n in lengths) + row
                gates = np.concatenate([x[direction, place].numpy(), hidden[direction, row]]) @ weight[direction]
                i, j, f, o = np.split(gates + bias[direction], 4)
                c = sigmoid(f + 1) * cell[direction, row] + sigmoid(i) * np.tanh(j)
                cuts["cell"] += int((np.abs(c) > lstm.cell_clip).sum())
                c = np.clip(c, -lstm.cell_clip, lstm.cell_clip)
                h = sigmoid(o) * np.tanh(c)
                if lstm.projection_dim < lstm.dim:
                    h = h @ lstm.w_projection.detach().numpy()[direction]
                cuts["projection"] += int((np.abs(h) > lstm.proj_clip).sum())
                if lstm.projection_dim < lstm.dim:  # else TensorFlow leaves the output as it is
                    h = np.clip(h, -lstm.proj_clip, lstm.proj_clip)
                hidden[direction, row], cell[direction, row] = h, c
                out[direction, place] = h
    return out, hidden, cell, cuts


def test_ragged_rows_of_both_directions_agree_with_the_step_by_step_cell(lstm, x, state):
    out, (hidden, cell) = lstm(x, BATCH_SIZES, state)
    expected_out, expected_hidden, expected_cell, cuts = oracle(lstm, x, LENGTHS, state)
    assert min(cuts.values()) >= 10  # the clips bite
    np.testing.assert_allclose(out.detach().numpy(), expected_out, atol=1e-12)
    np.testing.assert_allclose(hidden.numpy(), expected_hidden, atol=1e-12)  # after each row's own last step
    np.testing.assert_allclose(cell.numpy(), expected_cell, atol=1e-12)


def test_single_precision_and_no_gradient_give_the_same(lstm, x, state):
    expected, (expected_hidden, expected_cell) = lstm(x, BATCH_SIZES, state)
    lstm.float().requires_grad_(False)
    out, (hidden, cell) = lstm(x.float(), BATCH_SIZES, (state[0].float(), state[1].float()))
    for found, wanted in ((out, expected), (hidden, expected_hidden), (cell, expected_cell)):
        torch.testing.assert_close(found, wanted.float(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_without_gradients_the_faster_computation_gives_the_same(monkeypatch, lstm, x, state, onednn, dtype, atol):
    if not onednn:
        monkeypatch.setattr(linear, "_available", lambda dtype: False)
    given = tuple(part.to(dtype) for part in state)
    before = [part.clone() for part in given]
    with torch.no_grad():
        out, (hidden, cell) = lstm.to(dtype)(x.to(dtype), BATCH_SIZES, given)
    assert out.dtype == dtype
    *expected, cuts = oracle(lstm.double(), x, LENGTHS, state)
    assert min(cuts.values()) >= 10
    for found, wanted in zip((out, hidden, cell), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted, atol=atol)
    assert all(torch.equal(part, kept) for part, kept in zip(given, before, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_in_8_bits_outputs_differ_by_their_rounding(lstm, x, state, dtype):
    with torch.no_grad():
        parts = lstm.to(dtype)(x.to(dtype), BATCH_SIZES, tuple(part.to(dtype) for part in state), int8=True)
    *expected, _ = oracle(lstm.double(), x, LENGTHS, state)
    for found, wanted in zip((parts[0], *parts[1]), expected, strict=True):
        assert found.dtype == dtype
        assert 1e-5 < np.abs(found.numpy() - wanted).max() < 0.05


def test_in_8_bits_a_row_does_not_depend_on_the_rows_beside_it(lstm, x, state):
    with torch.no_grad():
        out, _ = lstm(x, BATCH_SIZES, state, int8=True)
        for row, length in enumerate(LENGTHS):
            places = [sum(min(n, step) for n in LENGTHS) + row for step in range(length)]
            alone, _ = lstm(x[:, places], [1] * length, tuple(part[:, row : row + 1] for part in state), int8=True)
            torch.testing.assert_close(alone, out[:, places], rtol=0, atol=1e-12)


def test_8_bits_are_refused_where_they_would_not_be_used(lstm, x, state):
    with pytest.raises(ValueError, match=r"^precision int8 is for a CPU without gradients"):
        lstm(x, BATCH_SIZES, state, int8=True)


@pytest.mark.parametrize("clips", [CLIPS, {"cell_clip": float("inf"), "proj_clip": float("inf")}])
def test_the_hand_written_gradient_is_the_numerical_one(lstm, x, state, clips):
    lstm.cell_clip, lstm.proj_clip = clips["cell_clip"], clips["proj_clip"]

    parameters = dict(lstm.named_parameters())
    assert ("w_projection" in parameters) == (lstm.projection_dim < lstm.dim)

    def run(x, *values):
        return torch.func.functional_call(lstm, dict(zip(parameters, values, strict=True)), (x, BATCH_SIZES, state))[0]

    def run_anew(*inputs):  # before each of gradcheck's many backward passes
        return checkpoint(run, *inputs, use_reentrant=False)

    assert torch.autograd.gradcheck(run_anew, (x.requires_grad_(), *parameters.values()))


def test_a_second_backward_pass_is_refused(lstm, x, state):
    total = lstm(x, BATCH_SIZES, state)[0].sum()
    total.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_a_run_cut_in_two_with_carried_state_is_the_long_run(lstm, x, state):
    whole, (hidden, cell) = lstm(x, BATCH_SIZES, state)
    first, between = lstm(x[:, :11], BATCH_SIZES[:3], state)
    second, (hidden_2, cell_2) = lstm(x[:, 11:], BATCH_SIZES[3:], between)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    torch.testing.assert_close(hidden_2, hidden)
    torch.testing.assert_close(cell_2, cell)


def test_the_given_state_is_not_changed(lstm, x, state):
    before = state[0].clone(), state[1].clone()
    lstm(x, BATCH_SIZES, state)
    assert torch.equal(state[0], before[0])
    assert torch.equal(state[1], before[1])


def test_the_initial_state_is_zero(lstm):
    hidden, cell = lstm.initial_state(3)
    assert hidden.shape == (2, 3, lstm.projection_dim)
    assert cell.shape == (2, 3, H)
    assert not hidden.any()
    assert not cell.any()
