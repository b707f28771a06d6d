"""Linear maps that are fast on every CPU.

On a CPU PyTorch multiplies float32 matrices with MKL, which does not use the widest vector units of every
processor (on an AMD EPYC it reaches 90 GFLOP/s a core where oneDNN, also within PyTorch, reaches 200), and reorders a
weight at every call. The operators used here are private to PyTorch. They are tested once; where they are
missing, fail or give other numbers, PyTorch's public operators are used. Either way the numbers are float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

_WORTH_PREPACKING = 40_000  # entries of a weight; below, the second call costs more than the product gains


class Linear(nn.Linear):
    """A linear layer: ``[..., P]`` to ``[..., Q]``."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias`` for x ``[..., P]``, weight ``[Q, P]`` and bias ``[Q]``."""
    if torch.is_autocast_enabled("cpu") or not (_suits(x) and _suits(weight)):
        return F.linear(x, weight, bias)
    out: Tensor = _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias)  # type: ignore[no-untyped-call]
    return out.view(*x.shape[:-1], len(weight))


def product_with(weight: Tensor) -> Callable[[Tensor], Tensor]:
    """``h -> h @ weight`` for many small h, as at the steps of a recurrent layer; the weight is prepacked once.

    Args:
        weight: ``[P, Q]``, which must not change while the function is in use.

    Returns:
        a function from ``[n, P]`` to ``[n, Q]``, for any n; no gradient flows through it.
    """
    if not _suits(weight):
        return lambda h: h @ weight
    prepacked = _prepacked(weight)
    return lambda h: _onednn(h, prepacked, None)


def product_and_sum_with(weight: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """As :func:`product_with`, ``h, x -> x + h @ weight`` in one pass, for h ``[n, P]`` and x ``[n, Q]``."""
    if not _suits(weight):
        return lambda h, x: torch.addmm(x, h, weight)
    prepacked = _prepacked(weight)
    return lambda h, x: torch.ops.mkldnn._linear_pointwise.binary(h, x, prepacked, None, "add")


def affine_maps_with(weights: Tensor, biases: Tensor) -> Callable[[Tensor], Sequence[Tensor] | Tensor]:
    """Both directions' ``h @ weight + bias`` for many small h; the weights are prepacked once.

    Args:
        weights: ``[2, P, Q]``, which must not change while the function is in use.
        biases: ``[2, Q]``.

    Returns:
        a function from ``[2, n, P]`` to two tensors ``[n, Q]``, or to one ``[2, n, Q]``.
    """
    if weights[0].numel() < _WORTH_PREPACKING or not _suits(weights):
        return lambda h: torch.baddbmm(biases.unsqueeze(1), h, weights)
    maps = [(_prepacked(weight), bias) for weight, bias in zip(weights, biases, strict=True)]
    return lambda h: [_onednn(each, *own) for each, own in zip(h, maps, strict=True)]


def products_with(weights: Tensor) -> Callable[[Tensor], Tensor]:
    """Both directions' :func:`product_with`: weights ``[2, P, Q]``, a function from ``[2, n, P]`` to ``[2, n, Q]``."""
    if weights[0].numel() < _WORTH_PREPACKING or not _suits(weights):
        weights = weights.contiguous()
        return lambda h: torch.bmm(h, weights)
    left, right = (product_with(weight) for weight in weights)
    return lambda h: torch.stack([left(h[0]), right(h[1])])


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` for ``[n, P]`` and ``[P, Q]``, outside of autograd."""
    return _onednn(a, b.t(), None) if _suits(a) and _suits(b) else a @ b


def weight_gradient(d_out: Tensor, x: Tensor) -> Tensor:
    """``d_out.T @ x`` for dense ``[n, Q]`` and ``[n, P]``, outside of autograd; the narrower one is copied."""
    return product(x.t(), d_out).t() if x.shape[1] < d_out.shape[1] else product(d_out.t(), x)


class _Linear(torch.autograd.Function):
    """All three products of a linear map."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return _onednn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        d_out = d_out.contiguous()
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad
        return (
            _onednn(d_out, weight.t(), None) if needs_x else None,
            weight_gradient(d_out, x) if needs_weight else None,
            d_out.sum(dim=0) if ctx.has_bias and needs_bias else None,
        )


def _prepacked(weight: Tensor) -> Tensor:
    """A weight ``[P, Q]`` in oneDNN's own layout, for :func:`_onednn`."""
    out: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.t().contiguous(), None)
    return out


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``x @ weight.T + bias`` for a weight ``[Q, P]``, ``x @ weight + bias`` for a prepacked one."""
    out: Tensor = torch.ops.mkldnn._linear_pointwise(_dense(x), _dense(weight), bias, "none", [], "")
    return out


def _dense(matrix: Tensor) -> Tensor:
    """The matrix, contiguous or a transposed view of one; other strides make the product a thousand times slower."""
    if matrix.is_mkldnn or matrix.is_contiguous() or matrix.t().is_contiguous():
        return matrix
    return matrix.contiguous()


def _suits(x: Tensor) -> bool:
    """Whether the private operators can take a tensor."""
    return x.device.type == "cpu" and x.numel() > 0 and _available(x.dtype)


@cache
def _available(dtype: torch.dtype) -> bool:
    """Whether the operators exist for a dtype and give the right numbers."""
    if dtype not in (torch.float32, torch.bfloat16):
        return False
    x, weight = torch.linspace(-1, 1, 15).view(3, 5).to(dtype), torch.linspace(-2, 1, 10).view(2, 5).to(dtype)
    with torch.autocast("cpu", enabled=False):
        expected = x @ weight.t(), x @ weight.t(), x.t() @ x, x[:, :2] + x @ weight.t()
    try:
        prepacked = _prepacked(weight.t())
        found = [_onednn(x, weight, None), _onednn(x, prepacked, None), _onednn(x.t(), x.t(), None)]
        found.append(torch.ops.mkldnn._linear_pointwise.binary(x, x[:, :2].contiguous(), prepacked, None, "add"))
    except (AttributeError, RuntimeError, TypeError):
        return False
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]
    return all(torch.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(found, expected, strict=True))
