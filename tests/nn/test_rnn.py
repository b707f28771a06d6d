import numpy as np
import torch
from oracles import bilstm

from elmo_tasks.nn.attention import masked_softmax
from elmo_tasks.nn.rnn import BiLSTM


def test_bilstm_reads_each_text_as_if_it_were_alone_whatever_the_padding_holds():
    lengths = [2, 5, 1]
    layer = BiLSTM(3, 4)
    assert layer.dim == 8
    x = torch.randn(3, 6, 3)  # one position more than the longest text
    out = layer(x, torch.arange(6) < torch.tensor(lengths).unsqueeze(1)).detach().numpy()
    for row, text, n in zip(out, x.numpy(), lengths, strict=True):
        np.testing.assert_allclose(row[:n], bilstm(layer, text[:n]), atol=1e-6)
        assert not row[n:].any()


def test_masked_softmax_is_a_softmax_of_the_unmasked_numbers_alone():
    scores = 3 * torch.randn(4, 6)
    mask = torch.rand(4, 6) > 0.4
    mask[:, 0], mask[3] = True, False
    for row, row_mask, out in zip(scores.numpy(), mask.numpy(), masked_softmax(scores, mask).numpy(), strict=True):
        exponentials = np.exp(row[row_mask])
        np.testing.assert_allclose(out[row_mask], exponentials / exponentials.sum(), rtol=1e-5)
        assert not out[~row_mask].any()
