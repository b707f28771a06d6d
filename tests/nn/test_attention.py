import numpy as np
import pytest
import torch

from elmo_tasks.nn.attention import Trilinear, masked_softmax, masked_softmax_with_null


@pytest.mark.parametrize(("n_x", "n_y"), [(3, 4), (1, 1), (5, 1), (2, 2)])
def test_trilinear_is_a_weighted_sum_of_both_words_and_their_product(n_x, n_y):
    layer = Trilinear(5)
    x, y = torch.randn(2, n_x, 5), torch.randn(2, n_y, 5)
    u, v, w = (p.detach().double().numpy() for p in (layer.x_weight, layer.y_weight, layer.product_weight))
    expected = np.zeros((2, n_x, n_y))
    for b in range(2):
        for i, x_i in enumerate(x[b].double().numpy()):
            for j, y_j in enumerate(y[b].double().numpy()):
                expected[b, i, j] = u @ x_i + v @ y_j + w @ (x_i * y_j)
    np.testing.assert_allclose(layer(x, y).detach().numpy(), expected, atol=1e-5)


def test_trilinears_gradients_are_those_of_finite_differences():
    layer = Trilinear(4).double()
    x, y = (torch.randn(2, n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 2))
    assert torch.autograd.gradcheck(lambda *_: layer(x, y), (x, y, *layer.parameters()))


def test_trilinear_of_a_text_with_itself_has_both_gradients():
    layer = Trilinear(4).double()
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *_: layer(x, x), (x, *layer.parameters()))


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e30])
def test_masked_softmax_of_nothing_is_nothing(scale):
    scores = (scale * torch.randn(3, 4)).requires_grad_()
    mask = torch.tensor([[True, False, True, True], [False] * 4, [False, False, False, True]])
    out = masked_softmax(scores, mask)
    assert out[1].tolist() == [0.0] * 4
    assert out[2].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert not out[~mask].any()
    torch.testing.assert_close(out.sum(dim=1), torch.tensor([1.0, 0.0, 1.0]))
    (out * torch.randn(3, 4)).sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert not scores.grad[1:].any()


def test_masked_softmax_takes_one_mask_for_all_rows_of_a_text():
    scores, mask = torch.randn(2, 3, 4), torch.tensor([[True, True, False, True], [False] * 4])
    out = masked_softmax(scores, mask.unsqueeze(1))
    for row, alone in zip(out[0], scores[0], strict=True):
        torch.testing.assert_close(row[mask[0]], alone[mask[0]].softmax(dim=0))
    assert not out[1].any()


def test_masked_softmaxs_gradients_are_those_of_finite_differences():
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, False, True, True], [False] * 4, [True] * 4])
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, mask), (scores,))


MASK = torch.tensor([[True, False, True, True], [False] * 4, [False, False, False, True]])


@pytest.mark.parametrize("null", [-1.0, 0.5, 40.0])
def test_a_null_choice_is_one_more_term_of_the_normaliser(null):
    scores = 2 * torch.randn(3, 4)
    out = masked_softmax_with_null(scores, MASK, torch.tensor(null))
    for row, mask, found in zip(scores.double().numpy(), MASK.numpy(), out, strict=True):
        exponentials = np.where(mask, np.exp(row), 0.0)
        np.testing.assert_allclose(found, exponentials / (exponentials.sum() + np.exp(null)), rtol=1e-5, atol=1e-20)
    assert (out.sum(dim=1) < 1).all()


@pytest.mark.parametrize("scale", [1e4, 1e30])
def test_a_null_choice_works_with_large_scores(scale):
    scores = torch.tensor([[scale, -scale], [-scale, -scale]], requires_grad=True)
    null = torch.tensor(-1.0, requires_grad=True)
    out = masked_softmax_with_null(scores, torch.ones(2, 2, dtype=torch.bool), null)
    assert out.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    out.sum().backward()
    assert scores.grad.isfinite().all()
    assert null.grad.isfinite()


def test_gradients_with_a_null_choice_are_those_of_finite_differences():
    scores = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    null = torch.tensor(-1.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s, n: masked_softmax_with_null(s, MASK, n), (scores, null))
