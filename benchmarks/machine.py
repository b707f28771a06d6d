"""The rate of the machine's matrix products, and the peak memory of the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

from elmo_tasks.nn.linear import product


def peak_megabytes() -> float:
    """The largest resident memory of this process so far (Linux; its ru_maxrss would include the parent's)."""
    return megabytes("VmHWM")


def megabytes(kind: str) -> float:
    """A line of this process's ``/proc/self/status`` (Linux): ``VmHWM``, ``RssAnon``, ``RssFile``."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(kind)) / 1024


class PeakMemory:
    """The largest memory of this process meanwhile, by a look every 20 ms, without pages of files.

    The system drops the pages of the layer store when it needs the memory, so that a plan does not count them either.
    """

    def __enter__(self) -> PeakMemory:
        self.libraries, self.megabytes, self.ended = megabytes("RssFile"), 0.0, threading.Event()
        self.watcher = threading.Thread(target=self._watch)
        self.watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.watcher.join()

    def _watch(self) -> None:
        while not self.ended.wait(0.02):
            self.megabytes = max(self.megabytes, self.libraries + megabytes("RssAnon"))


def ceiling(clock: Callable[[], float] = time.perf_counter) -> float:
    """GFLOP/s of a large matrix product, by the implementation that is faster on this machine."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    times = []
    for multiply in (torch.mm, product) * 8:
        start = clock()
        multiply(a, b)
        times.append(clock() - start)
    return 2 * 2048**3 / min(times) / 1e9
