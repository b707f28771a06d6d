"""Linear maps at a CPU's full speed.

PyTorch's products of 32-bit matrices on a CPU go through MKL, which does not use the widest vector units of every
processor (on an AMD EPYC it reaches 90 GFLOP/s a core where oneDNN, also within PyTorch, reaches 200), and lays a
weight out anew at every call. The operators used here are private ones of PyTorch: they are tried once, and wherever
they are missing, refuse or disagree, PyTorch's own product runs instead. Either way the numbers are 32-bit ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

_WORTH_LAYING_OUT = 40_000  # numbers of a weight; with less, the second call costs more than the product gains


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
    """``h -> h @ weight`` for many small h, as at the steps of a recurrent layer; the weight is laid out once.

    Args:
        weight: ``[P, Q]``, which must not change while the function is in use.

    Returns:
        a function from ``[n, P]`` to ``[n, Q]``, for any n; no gradient flows through it.
    """
    if not _suits(weight):
        return lambda h: h @ weight
    laid_out = _laid_out(weight)
    return lambda h: _onednn(h, laid_out, None)


def product_and_sum_with(weight: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """As :func:`product_with`, ``h, x -> x + h @ weight`` in one pass."""
    if not _suits(weight):
        return lambda h, x: torch.addmm(x, h, weight)
    laid_out = _laid_out(weight)
    return lambda h, x: torch.ops.mkldnn._linear_pointwise.binary(h, x, laid_out, None, "add")


def products_and_sums_with(weights: Tensor) -> Callable[[Tensor, Tensor], Sequence[Tensor] | Tensor]:
    """Both directions' :func:`product_and_sum_with`: weights ``[2, P, Q]``; what comes out is two ``[n, Q]``."""
    if weights[0].numel() < _WORTH_LAYING_OUT or not _suits(weights):
        return lambda h, x: torch.baddbmm(x, h, weights)
    left, right = (product_and_sum_with(weight) for weight in weights)
    return lambda h, x: (left(h[0], x[0]), right(h[1], x[1]))


def products_with(weights: Tensor) -> Callable[[Tensor], Tensor]:
    """Both directions' :func:`product_with`: weights ``[2, P, Q]``, a function from ``[2, n, P]`` to ``[2, n, Q]``."""
    if weights[0].numel() < _WORTH_LAYING_OUT or not _suits(weights):
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
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            _onednn(d_out, weight.t(), None) if of_x else None,
            weight_gradient(d_out, x) if of_weight else None,
            d_out.sum(dim=0) if ctx.has_bias and of_bias else None,
        )


def _laid_out(weight: Tensor) -> Tensor:
    out: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight.t().contiguous(), None)
    return out


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    out: Tensor = torch.ops.mkldnn._linear_pointwise(_dense(x), _dense(weight), bias, "none", [], "")
    return out


def _dense(matrix: Tensor) -> Tensor:
    """The matrix without gaps between its rows or columns, which would make the product a thousand times slower."""
    if matrix.is_mkldnn or matrix.is_contiguous() or matrix.t().is_contiguous():
        return matrix
    return matrix.contiguous()


def _suits(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.numel() > 0 and _available(x.dtype)


@cache
def _available(dtype: torch.dtype) -> bool:
    """Whether the operators are there for these numbers, and right."""
    if dtype not in (torch.float32, torch.bfloat16):
        return False
    x, weight = torch.linspace(-1, 1, 15).view(3, 5).to(dtype), torch.linspace(-2, 1, 10).view(2, 5).to(dtype)
    with torch.autocast("cpu", enabled=False):
        expected = x @ weight.t(), x @ weight.t(), x.t() @ x, x[:, :2] + x @ weight.t()
    try:
        laid_out = _laid_out(weight.t())
        found = [_onednn(x, weight, None), _onednn(x, laid_out, None), _onednn(x.t(), x.t(), None)]
        found.append(torch.ops.mkldnn._linear_pointwise.binary(x, x[:, :2].contiguous(), laid_out, None, "add"))
    except (AttributeError, RuntimeError, TypeError):
        return False
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]
    return all(torch.allclose(a, b, rtol=tolerance, atol=tolerance) for a, b in zip(found, expected, strict=True))
