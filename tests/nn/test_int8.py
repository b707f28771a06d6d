import numpy as np
import pytest
import torch

from elmo_tasks.nn.int8 import int8_product_and_sum_with, int8_product_with, to_int8


def oracle(h, weight):
    """Products of rounded numbers, one row and one column at a time, summed as integers."""
    out = np.zeros((len(h), weight.shape[1]))
    for r, row in enumerate(h):
        row_scale = max(abs(row)) / 127
        integers = [round(v / row_scale) if row_scale else 0 for v in row]
        for c, column in enumerate(weight.T):
            column_scale = max(abs(column)) / 127
            total = sum(a * round(v / column_scale) for a, v in zip(integers, column, strict=True))
            out[r, c] = total * row_scale * column_scale
    return out


@pytest.mark.parametrize(("n", "p", "q"), [(1, 1, 1), (7, 5, 3), (17, 64, 32), (40, 300, 9)])
def test_rows_and_columns_have_scales_of_their_own_and_sums_are_exact(n, p, q):
    h = torch.randn(n, p) * torch.logspace(-3, 3, n)[:, None]
    weight = torch.randn(p, q) * torch.logspace(-2, 2, q)
    h[n // 2] = 0
    expected = oracle(h.double().numpy(), weight.double().numpy())
    found = int8_product_with(weight)(h)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)  # small rows and columns too
    assert not found[n // 2].any()


def test_the_product_is_added_to_what_is_given():
    h, weight, x = torch.randn(4, 6), torch.randn(6, 5), torch.randn(4, 5)
    found = int8_product_and_sum_with(weight)(h, x)
    torch.testing.assert_close(found, x + int8_product_with(weight)(h))


def test_a_row_does_not_depend_on_the_rows_beside_it():
    product, h = int8_product_with(torch.randn(128, 64)), torch.randn(50, 128)
    h[1:] *= 100
    whole = product(h)
    for k in range(50):
        assert torch.equal(product(h[k : k + 1])[0], whole[k])


def test_numbers_are_kept_to_half_a_step():
    x = torch.randn(30, 50)
    integers, scale = to_int8(x, dim=1)
    assert integers.dtype == torch.int8
    assert integers.abs().amax(dim=1).eq(127).all()
    assert ((integers * scale - x).abs() <= scale / 2 * 1.0001).all()
