"""Whether this machine has a GPU, and which reduced precisions its processor supports."""

from __future__ import annotations

import torch

_INSTRUCTIONS = {
    "bfloat16": ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16"),
    "int8": ("avx512_vnni", "avx_vnni", "amx_int8", "dot", "i8mm"),
}
"""PyTorch's names of the instructions for each precision, on x86 and ARM processors. One of them is enough."""


def has_gpu() -> bool:
    """Whether PyTorch finds a GPU with CUDA (or ROCm)."""
    return torch.cuda.is_available()


def use_exact_products() -> None:
    """Multiply float32 numbers in float32, also on GPUs that would round them (TF32), in matrices and in cuDNN."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


def device_for(accelerator: str) -> str:
    """``cuda``, or ``cpu`` where there is no GPU or it is asked for.

    Args:
        accelerator: ``cpu``, ``gpu``, ``cuda`` or ``auto``.
    """
    return "cuda" if accelerator != "cpu" and has_gpu() else "cpu"


def has_instructions(precision: str) -> bool:
    """Whether the processor has instructions for matrix multiplication in ``bfloat16`` or ``int8``.

    Without them the results are right, but multiplication is many times slower than in float32. True if PyTorch cannot
    tell, as in its older versions.
    """
    if not hasattr(torch.cpu, "get_capabilities"):
        return True
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in _INSTRUCTIONS[precision])
