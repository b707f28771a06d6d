"""What this machine multiplies fast: whether there is a GPU, and the processor's instructions for short numbers."""

from __future__ import annotations

import torch

_INSTRUCTIONS = {
    "bfloat16": ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16"),
    "int8": ("avx512_vnni", "avx_vnni", "amx_int8", "dot", "i8mm"),
}
"""By precision: names of PyTorch's, of x86 processors and of ARM's. One of them is enough."""


def has_gpu() -> bool:
    """Whether PyTorch finds a GPU."""
    return torch.cuda.is_available() or torch.backends.mps.is_available()


def has_instructions(precision: str) -> bool:
    """Whether the processor has instructions for products in ``bfloat16`` or ``int8``.

    Without them such products are right, but many times slower than those of 32 bits. True if PyTorch cannot tell,
    as in its older versions.
    """
    if not hasattr(torch.cpu, "get_capabilities"):
        return True
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in _INSTRUCTIONS[precision])
