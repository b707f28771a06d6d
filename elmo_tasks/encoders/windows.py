"""Long texts in overlapping windows: which there are, and from which of them a word is read."""

from __future__ import annotations


def window_starts(n_pieces: int, size: int) -> list[int]:
    """Where windows of ``size`` pieces begin: every half window, and the last one at the end of the text.

    So every piece has, in one of them, a quarter of a window on both sides, or the text ends there. A text that fits
    is one window.
    """
    if n_pieces <= size:
        return [0]
    step = max(1, size // 2)
    return [*range(0, n_pieces - size, step), n_pieces - size]


def best_window(first: int, last: int, starts: list[int], size: int) -> int:
    """The number of the window in which pieces ``first`` to ``last`` have most context on their poorer side.

    Pieces outside of the window count as missing context, so that of a word longer than a window the middle is seen.
    """
    return max(range(len(starts)), key=lambda k: min(first - starts[k], starts[k] + size - 1 - last))
