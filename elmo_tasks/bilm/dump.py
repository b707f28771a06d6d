"""All layers of a text as an HDF5 file in bilm-tf's layout, for other frameworks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import h5py
import torch
from torch import Tensor
from tqdm import tqdm

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.data.corpus import portions
from elmo_tasks.data.text import read_lines
from elmo_tasks.errors import UserError

_PORTION_TOKENS = 20_000  # whose layers are held at once


def dump(bilm: BiLM, text: Path, out: Path, state: str = "reset") -> int:
    """Write the layers of each line of ``text``, tokens between spaces; the file appears whole or not at all.

    Args:
        bilm: whose layers.
        text: one tokenised sentence a line, plain or compressed.
        out: gets a float32 dataset ``[L, T, D]`` for each line, named by its number from 0; T is 0 for an empty line.
        state: see :class:`BiLM`; ``carry`` goes on from line to line, as bilm-tf does.

    Returns:
        the number of tokens.

    Raises:
        UserError: naming the file, if the text cannot be read or the layers cannot be written.
    """
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    n_tokens = 0
    bilm.forget()
    try:
        with h5py.File(temporary, "w") as file, tqdm(unit=" tokens", unit_scale=True) as bar:
            for portion in portions((line.split() for _, line in read_lines(text)), _PORTION_TOKENS):
                for layers in _layers(bilm, portion, state):
                    file.create_dataset(str(len(file)), data=layers.cpu().numpy())
                n_tokens += sum(map(len, portion))
                bar.update(n_tokens - bar.n)
            if not len(file):
                raise UserError(f"{text}: no line in it")
        temporary.replace(out)
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error})") from error
    finally:
        temporary.unlink(missing_ok=True)
    return n_tokens


def _layers(bilm: BiLM, sentences: list[list[str]], state: str) -> Iterator[Tensor]:
    """The layers of some lines, in order."""
    if state == "carry":  # one stream
        found = iter([bilm.layers([sentence], state)[0] for sentence in sentences if sentence])
    else:
        found = iter(bilm.layers([sentence for sentence in sentences if sentence], state))
    for sentence in sentences:
        yield next(found) if sentence else torch.empty(bilm.n_layers, 0, bilm.dim)
