"""Memory of a training process on a CPU: freed memory that is kept, and the caches of oneDNN and PyTorch."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")  # of oneDNN, and of PyTorch above it
_CAPACITY = 128
_GROWTH = 1.15
_STATM = Path("/proc/self/statm")


def keep_freed_memory() -> bool:
    """Keep large freed blocks in the process instead of handing them back to the kernel after each step.

    Activations of a training step are tens of megabytes. By default glibc maps each such block anew, and the kernel
    clears it page by page, which takes a good part of a step.

    Returns:
        False where there is no glibc, and nothing changes.
    """
    mallopt = _of_c_library("mallopt")
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 1 << 30) and mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1))


def limit_primitive_caches() -> None:
    """Limit the caches of oneDNN and PyTorch; to be called before the first matrix multiplication.

    They keep a prepared matrix multiplication for every input shape. In biLM training the character CNN has other
    shapes in every window; some shapes recur. By default each cache keeps 1,024 entries of 0.1 MB. These lie between
    the large blocks, which then cannot be reused: the process grows by gigabytes. What the environment sets is left as
    it is.
    """
    for name in _CACHES:
        os.environ.setdefault(name, str(_CAPACITY))


class HeapTrimmer:
    """Hands freed blocks back to the kernel (``malloc_trim``) whenever the process has grown by 15 %.

    Some blocks of a biLM have other sizes in every window. The freed ones that :func:`keep_freed_memory` keeps
    may fall into pieces, and then the process grows beyond what a step needs. The step after a trim takes up to a half
    longer, as its blocks are mapped anew. Without glibc or ``/proc`` nothing happens.
    """

    def __init__(self) -> None:
        self._trim = _of_c_library("malloc_trim") if _STATM.exists() else None
        self._pages_needed: int | None = None  # in use after the first step since the last trim

    def after_step(self) -> None:
        """Trim if it is time to; to be called after each update, or each scored window."""
        if self._trim is None:
            return
        pages = int(_STATM.read_text().split()[1])
        if self._pages_needed is None:
            self._pages_needed = pages
        elif pages > _GROWTH * self._pages_needed:
            self._trim(0)
            self._pages_needed = None

    def between(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches; trim before the first, and after each that was used if it is time to."""
        if self._trim is not None:
            self._trim(0)
        for batch in batches:
            yield batch
            self.after_step()


def _of_c_library(function: str) -> Any:
    """A function of the C library, or None where it has no such function (it is not glibc)."""
    library = ctypes.util.find_library("c")
    return getattr(ctypes.CDLL(library), function, None) if library else None
