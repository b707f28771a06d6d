"""GFLOP of the products of a biLM's training step."""

from __future__ import annotations

import numpy as np

from elmo_tasks.bilm.options import BiLMOptions

FILLING = 7  # characters after a word that the widest filter sees


def training_gflop(
    options: BiLMOptions, word_lengths: np.ndarray, n_positions: int, n_candidates: int
) -> dict[str, float]:
    """By part; the products of the backward pass count as twice those of the forward pass.

    Args:
        options: the sizes.
        word_lengths: character ids of each distinct word of the window, without filling.
        n_positions: of both directions.
        n_candidates: of the softmax.
    """
    n_filters = sum(count for _, count in options.filters)
    widths = word_lengths + FILLING
    encoder = sum(
        float((2 * (widths - width + 1) * width * options.character_dim * count).sum())
        for width, count in options.filters
    )
    encoder += len(widths) * (options.n_highway * 4 * n_filters**2 + 2 * n_filters * options.projection_dim)
    step = 2 * (2 * options.projection_dim * 4 * options.dim + options.dim * options.projection_dim)
    forward = {
        "encoder": encoder,
        "LSTM": options.n_layers * step * n_positions,
        "softmax": 2 * (n_candidates + 1) * options.projection_dim * n_positions,
    }
    return {name: 3 * n / 1e9 for name, n in forward.items()}
