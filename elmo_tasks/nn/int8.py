"""Matrix multiplication in int8, for reading with a frozen biLM on a CPU.

A number is an integer from -127 to 127 times a scale. Each row of the input and each column of the weight has its own
scale, and products are summed as integers. So a row's result does not depend on the rows beside it, and the layers of a
sentence are the same in every batch, as with 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

LARGEST = 127


def to_int8(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Round ``x`` to 8 bits.

    Args:
        x: ``[n, m]``.
        dim: along which the numbers share a scale, which is their largest absolute value over 127.

    Returns:
        integers ``[n, m]``, and the scales, ``[n, 1]`` for dim 1 or ``[1, m]`` for dim 0.
    """
    scale = x.abs().amax(dim, keepdim=True).div_(LARGEST).clamp_min_(torch.finfo(x.dtype).tiny)
    return (x / scale).round_().to(torch.int8), scale


def int8_product_and_sum_with(weight: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """``h, x -> x + h @ weight`` for many h; the weight is rounded once.

    Args:
        weight: ``[P, Q]``.

    Returns:
        a function of h ``[n, P]`` and x, which is ``[n, Q]`` or is broadcast to it, to ``[n, Q]``, without a gradient.
    """
    rounded, column_scale = to_int8(weight, dim=0)

    def product_and_sum(h: Tensor, x: Tensor) -> Tensor:
        integers, row_scale = to_int8(h, dim=1)
        return torch.addcmul(x, torch._int_mm(integers, rounded) * column_scale, row_scale)

    return product_and_sum


def int8_product_with(weight: Tensor) -> Callable[[Tensor], Tensor]:
    """As :func:`int8_product_and_sum_with`, ``h -> h @ weight``."""
    product_and_sum, zero = int8_product_and_sum_with(weight), weight.new_zeros(1)
    return lambda h: product_and_sum(h, zero)
