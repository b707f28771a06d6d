"""A larger biLM made from a smaller one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.grow import can_grow, grown
from elmo_tasks.bilm.options import BiLMOptions

SENTENCES = [["The", "river", "burst", "."], ["日本", "x"], ["a"]]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"dim": 24},
        {"dim": 13},
        {"filters": ((1, 8), (2, 16), (3, 16))},
        {"dim": 31, "filters": ((1, 4), (2, 9), (3, 20))},
    ],
)
def test_layers_are_those_of_the_smaller(tiny_bilm: BiLM, tiny_options: BiLMOptions, change: dict[str, int]) -> None:
    options = replace(tiny_options, **change)  # type: ignore[arg-type]
    assert can_grow(tiny_options, options)
    larger = BiLM(options)
    larger.load_state_dict(grown(tiny_bilm, options))
    for found, expected in zip(larger.layers(SENTENCES), tiny_bilm.layers(SENTENCES), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_the_same_size_is_the_same_to_the_bit(tiny_bilm: BiLM, tiny_options: BiLMOptions) -> None:
    weights = grown(tiny_bilm, tiny_options)
    assert all(torch.equal(weights[name], value) for name, value in tiny_bilm.state_dict().items())


def test_copies_do_not_stay_copies(tiny_bilm: BiLM, tiny_options: BiLMOptions) -> None:
    options = replace(tiny_options, dim=24, filters=((1, 8), (2, 16), (3, 16)))
    larger = BiLM(options)
    larger.load_state_dict(grown(tiny_bilm, options))
    tokens = larger.encoder(torch.randint(1, 200, (30, 8)))
    outs, _ = larger.run(tokens.expand(2, -1, -1), [6] * 5, larger.initial_states(6))
    outs[-1].square().sum().backward()  # type: ignore[no-untyped-call]
    for lstm in larger.lstms:
        assert lstm.weight.grad is not None
        one, other = lstm.weight.grad.view(2, -1, 4, 2, 12).unbind(3)
        assert ((one - other).abs().amax(dim=(1, 2)) > 1e-3 * one.abs().amax(dim=(1, 2))).all()
    first, second = larger.encoder.kernels[1].grad[:, :8], larger.encoder.kernels[1].grad[:, 8:]
    used = first.abs().amax(dim=0) > 0
    assert used.any()
    assert ((first - second).abs().amax(dim=0)[used] > 0).all()


@pytest.mark.parametrize(
    "change",
    [
        {"dim": 10},
        {"projection_dim": 8},
        {"n_layers": 3},
        {"n_highway": 2},
        {"cell_clip": 4.0},
        {"skip_connections": False},
        {"filters": ((1, 4), (2, 7), (3, 8))},
        {"filters": ((1, 4), (2, 8), (4, 8))},
        {"filters": ((1, 4), (2, 8))},
    ],
)
def test_other_sizes_are_not_grown(tiny_options: BiLMOptions, change: dict[str, int]) -> None:
    assert not can_grow(tiny_options, replace(tiny_options, **change))  # type: ignore[arg-type]


def test_a_projection_is_not_invented(tiny_options: BiLMOptions) -> None:
    no_cells = replace(tiny_options, dim=6)
    assert not can_grow(no_cells, tiny_options)
    assert can_grow(no_cells, no_cells)
    no_filters = replace(tiny_options, filters=((1, 2), (2, 4)))
    assert not can_grow(no_filters, replace(no_filters, filters=((1, 2), (2, 5))))
