"""Named tensors as a file that appears whole or not at all, without pickle."""

from __future__ import annotations

import os
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from elmo_tasks.errors import UserError


def write_tensors(path: Path, tensors: dict[str, Tensor], what: str, metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file in one rename, so that a kill leaves the one before.

    Args:
        path: of the file; its folder is made.
        tensors: on the CPU and contiguous, any shapes.
        what: they are, for the error.
        metadata: text for the file's header.

    Raises:
        UserError: if the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode  # what the umask grants; safetensors' own files are their owner's alone
        save_file(tensors, temporary, metadata)
        temporary.chmod(mode)
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: {what} cannot be written ({error}); set paths.outputs") from error
    finally:
        if path.parent.is_dir():
            temporary.unlink(missing_ok=True)
