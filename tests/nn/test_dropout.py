from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from elmo_tasks.errors import UserError
from elmo_tasks.nn.dropout import Dropout, VariationalDropout, dropout_mask

RATES = [0.001, 0.2, 0.5, 0.8]
both_kinds = pytest.mark.parametrize("kind", [Dropout, VariationalDropout])


def deviations(found, n, p):
    """How many standard deviations the number of hits in n trials differs from its expectation under probability p."""
    return np.abs(np.asarray(found) - n * p).max() / max(1, np.sqrt(n * p * (1 - p)))


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("offset", range(4))
def test_any_four_neighbours_are_dropped_as_if_each_were_alone(p, offset):
    n = 100_000
    dropped = (Dropout(p)(torch.ones(4 * n + 4)) == 0)[offset:][: 4 * n].view(n, 4)
    assert deviations(dropped.sum(dim=0), n, p) < 5
    patterns = dict.fromkeys(product([0, 1], repeat=4), 0)
    codes = (dropped * torch.tensor([8, 4, 2, 1])).sum(dim=1)
    for pattern, count in zip(patterns, torch.bincount(codes, minlength=16).tolist(), strict=True):
        assert deviations(count, n, p ** sum(pattern) * (1 - p) ** (4 - sum(pattern))) < 6, pattern


def test_elements_further_apart_are_not_correlated():
    n = 200_000
    kept = (Dropout(0.5)(torch.ones(n)) != 0).double() - 0.5
    for lag in range(1, 70):
        assert abs(float(kept[lag:] @ kept[:-lag])) / (0.25 * n) < 5 / np.sqrt(n), lag


@pytest.mark.parametrize("p", [2**-16, 0.1, 0.2, 0.5, 0.75, 1 - 2**-16, 1 - 2**-20])
def test_the_rate_is_right_to_sixteen_bits(monkeypatch, p):
    """With each 16-bit number drawn once."""
    every = torch.arange(-(2**15), 2**15).to(torch.int16)[torch.randperm(2**16)]
    monkeypatch.setattr(torch.Tensor, "random_", lambda self, *_: self.copy_(every.view(torch.int64)))
    mask = dropout_mask(torch.ones(()), torch.Size((2**16,)), p)
    assert int((mask == 0).sum()) == min(round(p * 2**16), 2**16 - 1)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 7])
def test_the_rate_holds_at_every_place_of_a_text_that_does_not_fill_its_random_numbers(n):
    n_draws, p, dropout = 2000, 0.3, Dropout(0.3)
    dropped = torch.stack([dropout(torch.ones(n)) == 0 for _ in range(n_draws)])
    assert deviations(dropped.sum(dim=0), n_draws, p) < 5


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (3, 7), (0, 3), (2, 3, 5), (4, 1, 2, 3)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_what_is_kept_is_scaled_and_neither_shape_nor_type_changes(shape, dtype):
    x = (torch.rand(shape) + 1).to(dtype)
    for _ in range(10):
        out = Dropout(0.75)(x)
        assert out.shape == x.shape
        assert out.dtype == dtype
        assert torch.equal(out, torch.where(out == 0, 0, 4 * x).to(dtype))


def test_dropout_of_a_view_is_element_by_element_too():
    x = (torch.rand(40, 60) + 1).t()[::2]
    out = Dropout(0.5)(x)
    kept = out != 0
    assert torch.equal(out[kept], 2 * x[kept])
    assert 0.4 < kept.float().mean() < 0.6


@both_kinds
def test_the_same_seed_gives_the_same_mask_and_the_next_one_is_another(kind):
    x, dropout = torch.rand(3, 4, 50) + 1, kind(0.4)
    outputs = []
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        outputs.append((dropout(x), dropout(x)))
    (first, second), again, other = outputs
    assert torch.equal(first, again[0])
    assert torch.equal(second, again[1])
    assert not torch.equal(first, second)
    assert not torch.equal(first, other[0])


@both_kinds
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_in_evaluation_and_at_rate_zero_nothing_is_dropped(kind, training, p):
    x = torch.randn(2, 3, 40)
    torch.manual_seed(0)
    out = kind(p).train(training)(x)
    assert torch.equal(out, x) == (p == 0 or not training)
    if torch.equal(out, x):
        torch.manual_seed(0)
        drawn = torch.rand(4)
        torch.manual_seed(0)
        kind(p).train(training)(x)
        assert torch.equal(torch.rand(4), drawn), "and no random number is spent on it"


@both_kinds
def test_the_gradient_is_the_mask(kind):
    x = torch.randn(3, 7, 11, dtype=torch.float64, requires_grad=True)
    out = kind(0.3)(x)
    weights = torch.randn_like(out)
    (out * weights).sum().backward()
    mask = x.grad / weights
    assert 0.5 < (mask != 0).double().mean() < 0.9
    torch.testing.assert_close(mask, torch.where(mask == 0, 0.0, 1 / 0.7).double())
    torch.testing.assert_close(out, x * mask)


@both_kinds
@pytest.mark.parametrize("p", [-0.1, 1, 1.5, float("nan")])
def test_rates_that_leave_nothing_or_make_no_sense_are_refused(kind, p):
    with pytest.raises(UserError, match=f"{p}"):
        kind(p)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_masks_on_other_devices_have_the_rate_and_the_scale_too(dtype):
    """A stand-in says that it is elsewhere."""
    n, p = 100_000, 0.2
    elsewhere = SimpleNamespace(device=torch.device("cuda"), new_empty=lambda shape: torch.empty(shape, dtype=dtype))
    mask = dropout_mask(elsewhere, torch.Size((n // 10, 10)), p)
    assert mask.dtype == dtype
    assert mask.shape == (n // 10, 10)
    assert deviations((mask == 0).sum(), n, p) < 5
    torch.testing.assert_close(mask[mask != 0].unique(), torch.tensor([1.25], dtype=dtype))


def test_variational_dropout_drops_the_same_dimensions_at_all_steps_of_a_text():
    x = torch.rand(40, 7, 50) + 1
    out = VariationalDropout(0.4)(x)
    kept = out != 0
    assert (kept == kept[:, :1]).all()
    assert len(kept[:, 0].unique(dim=0)) == 40, "texts have masks of their own"
    torch.testing.assert_close(out[kept], x[kept] / 0.6)
    assert kept[:, 0].float().mean() == pytest.approx(0.6, abs=0.06)


def test_plain_dropout_drops_other_dimensions_at_each_step():
    kept = Dropout(0.4)(torch.ones(40, 7, 50)) != 0
    assert len(kept.flatten(0, 1).unique(dim=0)) == 40 * 7
