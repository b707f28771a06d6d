import pytest
import torch
from torch.nn import functional as F

from elmo_tasks.nn import linear as module
from elmo_tasks.nn.linear import Linear, linear, product_and_sum_with, product_with, products_with, weight_gradient

SHAPES = [((3, 5), 7), ((2, 9, 33), 64), ((4, 1), 1), ((1, 2, 3, 16), 5), ((0, 3), 2)]


@pytest.fixture(params=[True, False], ids=["onednn", "plain"])
def available(request, monkeypatch):
    """With oneDNN's operators, where they are, and without."""
    if not request.param:
        monkeypatch.setattr(module, "_available", lambda dtype: False)
    return request.param


def outputs_and_gradients(function, x, weight, bias):
    leaves = [leaf.clone().requires_grad_() for leaf in (x, weight) + (() if bias is None else (bias,))]
    out = function(*leaves)
    (out * torch.linspace(-1, 1, max(1, out.numel()))[: out.numel()].view(out.shape)).sum().backward()
    return [out.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize(("shape", "width"), SHAPES)
@pytest.mark.parametrize("with_bias", [True, False])
def test_outputs_and_gradients_are_those_of_torch(available, shape, width, with_bias):
    x, weight = torch.randn(shape), torch.randn(width, shape[-1])
    bias = torch.randn(width) if with_bias else None
    found, expected = (outputs_and_gradients(f, x, weight, bias) for f in (linear, F.linear))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("n", "q", "p"), [(7, 3, 9), (7, 9, 3), (1, 4, 4), (300, 17, 40)])
def test_a_weights_gradient_is_the_sum_of_outer_products(available, n, q, p):
    d_out, x = torch.randn(n, q), torch.randn(n, p)
    expected = torch.stack([torch.outer(a, b) for a, b in zip(d_out, x, strict=True)]).sum(dim=0)
    torch.testing.assert_close(weight_gradient(d_out, x), expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_tensors_of_other_types_than_float32_use_the_plain_product(dtype):
    x, weight = torch.randn(3, 5, dtype=dtype), torch.randn(4, 5, dtype=dtype)
    assert torch.equal(linear(x, weight), F.linear(x, weight))
    assert torch.equal(product_with(weight.t())(x), x @ weight.t())


def test_autocast_is_honoured():
    x, layer = torch.randn(3, 5), Linear(5, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


def test_frozen_parts_get_no_gradient(available):
    x, weight = torch.randn(3, 5), torch.randn(4, 5, requires_grad=True)
    linear(x, weight).sum().backward()
    torch.testing.assert_close(weight.grad, x.sum(dim=0).expand(4, 5))
    assert x.grad is None
    frozen = Linear(5, 4).requires_grad_(False)
    leaf = x.clone().requires_grad_()
    frozen(leaf).sum().backward()
    torch.testing.assert_close(leaf.grad, frozen.weight.sum(dim=0).expand(3, 5))
    assert frozen.weight.grad is None


def test_views_and_transposed_matrices_work(available):
    x, weight = torch.randn(6, 8)[::2, 1:6], torch.randn(5, 4).t()
    torch.testing.assert_close(linear(x, weight), x @ weight.t())
    torch.testing.assert_close(linear(torch.randn(8, 3).t()[:, 1:6], weight).shape, torch.Size([3, 4]))


@pytest.mark.parametrize("rows", [1, 2, 7, 40])
def test_a_prepacked_weight_works_with_any_number_of_rows(available, rows):
    weight, h = torch.randn(33, 70), torch.randn(rows, 33)
    torch.testing.assert_close(product_with(weight)(h), h @ weight, atol=1e-5, rtol=1e-5)
    x = torch.randn(len(h), weight.shape[1])
    before = x.clone()
    torch.testing.assert_close(product_and_sum_with(weight)(h, x), x + h @ weight, atol=1e-5, rtol=1e-5)
    assert torch.equal(x, before)


@pytest.mark.parametrize("failure", ["missing", "wrong"])
def test_operators_that_are_missing_or_wrong_are_not_used(monkeypatch, failure):
    def broken(x, weight, bias):
        if failure == "missing":
            raise AttributeError("no such operator")
        return x.new_zeros(len(x), len(weight))

    monkeypatch.setattr(module, "_onednn", broken)
    module._available.cache_clear()
    x, weight = torch.randn(3, 5), torch.randn(4, 5)
    assert torch.equal(linear(x, weight), F.linear(x, weight))
    assert not module._available(torch.float32)
    module._available.cache_clear()


def test_matrices_with_gaps_are_made_contiguous_first(monkeypatch):
    seen = []
    real = torch.ops.mkldnn._linear_pointwise

    class Watched:
        @staticmethod
        def _linear_pointwise(x, weight, *rest):
            seen.extend([x, weight])
            return real(x, weight, *rest)

    monkeypatch.setattr(module.torch.ops, "mkldnn", Watched, raising=False)
    monkeypatch.setattr(module, "_available", lambda dtype: True)
    wide = torch.randn(7, 20)
    for part in wide.chunk(4, dim=1):
        x = torch.randn(3, 10)[:, ::2]
        torch.testing.assert_close(linear(x, part), x @ part.t())
    assert seen
    assert all(matrix.is_contiguous() or matrix.t().is_contiguous() for matrix in seen)


@pytest.mark.parametrize("size", [(5, 12), (150, 450)], ids=["small", "large"])
def test_both_directions_are_multiplied_by_their_own_weight(available, size):
    weights, h = torch.randn(2, *size), torch.randn(2, 9, size[0])
    torch.testing.assert_close(products_with(weights)(h), h @ weights, atol=1e-4, rtol=1e-5)
    turned = torch.randn(2, 9, size[1])
    found = products_with(weights.transpose(1, 2))(turned)
    torch.testing.assert_close(found, turned @ weights.transpose(1, 2), atol=1e-4, rtol=1e-5)
