"""Times two implementations of one computation, alternately in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

N_TURNS = 6


def best_ms(*calls: Callable[[], Any]) -> list[float]:
    """The best time of each call; the calls alternate."""
    best = [float("inf")] * len(calls)
    for _ in range(N_TURNS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], 1000 * (time.perf_counter() - start))
    return best


def print_head() -> None:
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; forward and backward")
    print(f"{'':42}{'ours ms':>9}{'plain ms':>9}{'ratio':>8}{'tokens/s':>10}{'plain':>10}{'difference':>12}")


def line(name: str, ours: float, plain: float, difference: float, n_tokens: int) -> None:
    tokens = f"{1000 * n_tokens / ours:10,.0f}{1000 * n_tokens / plain:10,.0f}"
    print(f"{name:42}{ours:9.1f}{plain:9.1f}{plain / ours:8.2f}{tokens}{difference:12.1e}", flush=True)
