"""Memory of a training process on a CPU: how freed blocks are kept, and how many prepared products."""

from __future__ import annotations

import ctypes
import ctypes.util
import os

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")  # of oneDNN, and of PyTorch above it
_PRODUCTS = 128


def keep_large_blocks() -> bool:
    """Keep large freed blocks in the process instead of handing them back to the kernel after each step.

    Activations of a training step are tens of megabytes. By default glibc maps each such block anew, and the kernel
    clears it page by page, which takes a good part of a step.

    Returns:
        False where there is no glibc, and nothing changes.
    """
    library = ctypes.util.find_library("c")
    mallopt = getattr(ctypes.CDLL(library), "mallopt", None) if library else None
    if mallopt is None:
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 1 << 30) and mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1))


def keep_few_products() -> None:
    """Keep fewer matrix products that were prepared for one shape; to be called before the first product.

    In biLM training the character CNN's shapes differ in every window, so that prepared products are hardly ever used
    again. By default 1,024 of them are kept twice. Each takes 0.1 MB, and they lie between the large blocks, which then
    cannot be reused: the process grows by gigabytes. What the environment sets is left as it is.
    """
    for name in _CACHES:
        os.environ.setdefault(name, str(_PRODUCTS))
