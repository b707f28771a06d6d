"""GFLOP of the products of a biLM's training step."""

from __future__ import annotations

import numpy as np

from elmo_tasks.bilm.options import BiLMOptions

PADDING = 7  # padding characters after a word that the widest filter sees


def training_gflop(
    options: BiLMOptions, word_lengths: np.ndarray, n_positions: int, n_candidates: int
) -> dict[str, float]:
    """GFLOP of each part; the backward pass counts as twice the forward pass.

    Args:
        options: the sizes.
        word_lengths: the number of character ids of each distinct word of the window, without padding.
        n_positions: positions of both directions together.
        n_candidates: words that the sampled softmax scores.
    """
    n_filters = sum(count for _, count in options.filters)
    widths = word_lengths + PADDING
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
