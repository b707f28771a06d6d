import pytest
import torch

from elmo_tasks.nn import sampled_softmax
from elmo_tasks.nn.gather import gather_rows
from elmo_tasks.nn.sampled_softmax import sampled_softmax_loss

N, K, P = 9, 5, 3


@pytest.fixture
def parts():
    """Hidden states, scores of the targets, the candidates' weights and biases, and where a candidate is the target."""
    shapes = ((N, P), (N,), (K, P), (K,))
    tensors = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    return *tensors, torch.tensor([-1, 0, 4, -1, -1, 2, -1, 0, -1])


def oracle(hidden, scores, weight, bias, columns):
    losses = []
    for h, score, column in zip(hidden, scores, columns.tolist(), strict=True):
        others = [weight[k] @ h + bias[k] for k in range(K) if k != column]
        losses.append(torch.logsumexp(torch.stack([score, *others]), dim=0) - score)
    return torch.stack(losses).mean()


@pytest.mark.parametrize("block", [1, 3 * K, 1000])
def test_loss_and_gradients_are_those_of_a_loop_over_positions(parts, monkeypatch, block):
    monkeypatch.setitem(sampled_softmax._BLOCK_LOGITS, "cpu", block)
    monkeypatch.setattr(sampled_softmax, "_FEWEST_ROWS", 1)
    found, expected = 3 * sampled_softmax_loss(*parts), 3 * oracle(*parts)
    torch.testing.assert_close(found, expected)
    for a, b in zip(torch.autograd.grad(found, parts[:4]), torch.autograd.grad(expected, parts[:4]), strict=True):
        torch.testing.assert_close(a, b)


def test_large_logits_do_not_overflow(parts):
    hidden, scores, *others = parts
    for scale in (1e3, -1e3):
        shifted = (hidden * scale, scores, *others)
        loss = sampled_softmax_loss(*shifted)
        torch.testing.assert_close(loss, oracle(*shifted))


def test_products_in_bfloat16_stay_near(parts):
    hidden, scores, weight, bias, columns = parts
    narrow = sampled_softmax_loss(hidden.bfloat16(), scores.float(), weight.float(), bias.float(), columns)
    found, expected = torch.autograd.grad(narrow, parts[:4]), torch.autograd.grad(oracle(*parts), parts[:4])
    torch.testing.assert_close(narrow.double(), oracle(*parts), rtol=0.02, atol=0)
    for a, b in zip(found, expected, strict=True):
        assert (a - b).norm() < 0.03 * b.norm()


def test_gathered_rows_and_their_gradient_are_those_of_indexing():
    table = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([[0, 3, 3], [1, 0, 3]])
    found, expected = gather_rows(table, rows), table[rows]
    assert torch.equal(found, expected)
    d_out = torch.randn_like(found)
    assert torch.equal(*(torch.autograd.grad(out, table, d_out)[0] for out in (found, expected)))
