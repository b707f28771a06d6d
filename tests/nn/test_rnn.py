import numpy as np
import torch

from elmo_tasks.nn.attention import masked_softmax
from elmo_tasks.nn.rnn import BiLSTM


def step_by_step(x, lstm):
    """One direction of an LSTM over an unpadded text, gate by gate (Hochreiter and Schmidhuber's equations)."""
    w_in, w_h, b_in, b_h = (
        getattr(lstm, f"{name}_l0").detach().numpy() for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = c = np.zeros(lstm.hidden_size)
    out = []
    for step in x:
        i, f, g, o = np.split(w_in @ step + b_in + w_h @ h + b_h, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out.append(h)
    return np.array(out)


def test_bilstm_reads_each_text_as_if_it_were_alone_whatever_the_padding_holds():
    lengths = [2, 5, 1]
    layer = BiLSTM(3, 4)
    assert layer.dim == 8
    x = torch.randn(3, 6, 3)  # one position more than the longest text
    out = layer(x, torch.arange(6) < torch.tensor(lengths).unsqueeze(1)).detach().numpy()
    for row, text, n in zip(out, x.numpy(), lengths, strict=True):
        forward = step_by_step(text[:n], layer.left_to_right)
        backward = step_by_step(text[:n][::-1], layer.right_to_left)[::-1]
        np.testing.assert_allclose(row[:n], np.concatenate([forward, backward], axis=1), atol=1e-6)
        assert not row[n:].any()


def test_masked_softmax_is_a_softmax_of_the_unmasked_numbers_alone():
    scores = 3 * torch.randn(4, 6)
    mask = torch.rand(4, 6) > 0.4
    mask[:, 0], mask[3] = True, False
    for row, row_mask, out in zip(scores.numpy(), mask.numpy(), masked_softmax(scores, mask).numpy(), strict=True):
        exponentials = np.exp(row[row_mask])
        np.testing.assert_allclose(out[row_mask], exponentials / exponentials.sum(), rtol=1e-5)
        assert not out[~row_mask].any()
