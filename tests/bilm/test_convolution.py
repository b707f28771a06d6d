import pytest
import torch
from torch.nn import functional as F

from elmo_tasks.bilm.convolution import _find_equal, character_maxima
from elmo_tasks.nn.characters import character_id_table

FILTERS = [(1, 3), (2, 4), (4, 5)]
WIDTH, DIM = 4, 3
WORDS = ["a", "aaaaaaa", "......", "word", "<S>"]  # in some a window occurs several times


@pytest.fixture
def parts():
    characters = torch.randn(262, DIM, dtype=torch.float64, requires_grad=True)
    kernels = [torch.randn(width * DIM, count, dtype=torch.float64, requires_grad=True) for width, count in FILTERS]
    return character_id_table(WORDS, extra=WIDTH), characters, kernels


def joined(kernels):
    return torch.cat([F.pad(k, (0, 0, 0, WIDTH * DIM - len(k))) for k in kernels], dim=1)


def oracle(char_ids, characters, kernels):
    """Each filter width by itself, at each of its windows within the word's ids."""
    embedded, maxima = characters[char_ids], []
    for (width, _), kernel in zip(FILTERS, kernels, strict=True):
        starts = range(char_ids.shape[1] - width + 1)
        scores = torch.stack([embedded[:, s : s + width].flatten(1) @ kernel for s in starts], dim=1)
        maxima.append(scores.amax(dim=1))
    return torch.cat(maxima, dim=1)


def test_maxima_and_gradients_are_those_of_the_windows_one_by_one(parts):
    char_ids, characters, kernels = parts
    found, expected = character_maxima(char_ids, characters, joined(kernels), FILTERS), oracle(*parts)
    torch.testing.assert_close(found, expected)
    d_out, inputs = torch.randn_like(expected), [characters, *kernels]
    gradients = [torch.autograd.grad(out, inputs, d_out) for out in (found, expected)]
    for name, a, b in zip(("characters", *map(str, FILTERS)), *gradients, strict=True):
        assert b.abs().sum() > 0
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6, msg=name)  # that of characters is summed in 32 bits


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_windows_with_the_maximum_are_found_in_every_dtype(dtype):
    scores = torch.randn(50, 9, 7).mul_(1e-3).to(dtype)
    scores[:, 3] = scores[:, 5]
    scores[:, 7:] = -torch.inf
    maxima = scores.amax(dim=1, keepdim=True)
    found = torch.full_like(scores, torch.nan)
    _find_equal(scores, maxima, out=found)
    assert torch.equal(found, (scores == maxima).to(dtype))
    assert int(found.sum()) > 50 * 7


@pytest.mark.parametrize("n_words", [1, 37, 331])
def test_what_fills_a_size_up_has_no_part_in_maxima_and_gradients(parts, n_words):
    _, characters, kernels = parts
    char_ids = character_id_table([f"w{k}" * (k % 5 + 1) for k in range(n_words)], extra=WIDTH)
    found, expected = character_maxima(char_ids, characters, joined(kernels), FILTERS), oracle(char_ids, *parts[1:])
    torch.testing.assert_close(found, expected)
    d_out, inputs = torch.randn_like(expected), [characters, *kernels]
    for a, b in zip(*(torch.autograd.grad(out, inputs, d_out) for out in (found, expected)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
