import numpy as np
import pytest
import torch
from oracles import coupled_bilstm, numbers

from elmo_tasks.errors import UserError
from elmo_tasks.nn import coupled_lstm
from elmo_tasks.nn.coupled_lstm import BiCoupledLSTM

LENGTHS, N_TOKENS, INPUT_DIM, HIDDEN = [2, 5, 1], 6, 3, 4  # one position more than the longest text
MASK = torch.arange(N_TOKENS) < torch.tensor(LENGTHS).unsqueeze(1)


def make_layer(shake, dropout=0.0):
    return shake(BiCoupledLSTM(INPUT_DIM, HIDDEN, dropout), std=0.6)


def test_each_text_is_read_by_the_2017_cell_as_if_it_were_alone_whatever_the_padding_holds(shake):
    layer, x = make_layer(shake, dropout=0.5).eval(), torch.randn(3, N_TOKENS, INPUT_DIM)
    assert layer.dim == 2 * HIDDEN
    out = layer(x, MASK).detach().numpy()
    for row, text, n in zip(out, x.numpy(), LENGTHS, strict=True):
        np.testing.assert_allclose(row[:n], coupled_bilstm(layer, text[:n]), atol=1e-6)
        assert not row[n:].any()


def test_in_training_each_text_and_direction_has_one_mask_on_the_state_that_is_read(shake, monkeypatch):
    layer, x, masks = make_layer(shake, dropout=0.5).train(), torch.randn(3, N_TOKENS, INPUT_DIM), []
    draw = coupled_lstm.dropout_mask
    monkeypatch.setattr(coupled_lstm, "dropout_mask", lambda *a: masks.append(draw(*a)) or masks[-1])
    out = layer(x, MASK).detach().numpy()
    (keep,) = masks
    assert keep.shape == (2, 3, HIDDEN)
    assert set(keep.flatten().tolist()) == {0.0, 2.0}
    for k, n in enumerate(LENGTHS):
        expected = coupled_bilstm(layer, x[k, :n].numpy(), numbers(keep[:, k]))
        np.testing.assert_allclose(out[k, :n], expected, atol=1e-6)


def test_gradients_are_those_of_finite_differences(shake):
    layer = make_layer(shake).double()
    x = torch.randn(3, N_TOKENS, INPUT_DIM, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *_: layer(x, MASK), (x, *layer.parameters()))


def test_weights_start_orthogonal_gate_by_gate_and_biases_at_zero():
    layer = BiCoupledLSTM(INPUT_DIM, HIDDEN, 0.0)
    whole = torch.cat([layer.input_weight, layer.hidden_weight], dim=2).detach()
    for gate in whole.reshape(6, HIDDEN, INPUT_DIM + HIDDEN):
        torch.testing.assert_close(gate @ gate.T, torch.eye(HIDDEN), atol=1e-5, rtol=0)
    assert not layer.bias.any()
    assert layer.initial_hidden.any()
    assert layer.initial_cell.any()


def test_a_rate_that_is_not_a_number_is_refused():
    with pytest.raises(UserError, match=r"a dropout rate of 1\.5"):
        BiCoupledLSTM(INPUT_DIM, HIDDEN, 1.5)
