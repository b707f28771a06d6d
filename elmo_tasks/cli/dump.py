"""All layers of a text as an HDF5 file in bilm-tf's layout, for other frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor

from elmo_tasks.bilm.hdf5 import new_file
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.data.corpus import portions, read_lists
from elmo_tasks.errors import UserError
from elmo_tasks.nn.characters import describe_truncated, is_truncated
from elmo_tasks.progress import counting, say

_PORTION_TOKENS = 20_000  # whose layers are held at once


def dump(bilm: BiLM, text: Path, out: Path, state: str = "reset") -> int:
    """Write the layers of each line of ``text``, tokens between spaces; the file appears whole or not at all.

    Tokens that are truncated are counted, and the user is told.

    Args:
        bilm: whose layers.
        text: one tokenised sentence a line, plain or compressed.
        out: gets a float32 dataset ``[L, T, D]`` for each line, named by its number from 0; T is 0 for an empty line.
        state: see :class:`BiLM`; ``carry`` continues from line to line, as bilm-tf does.

    Returns:
        the number of tokens.

    Raises:
        UserError: naming the file, if the text cannot be read, a line of it is too long (see :func:`read_lists`) or
            the layers cannot be written.
    """
    n_lines = n_tokens = n_cut = 0
    example, most = "", bilm.options.max_characters
    bilm.reset_carried_state()
    bilm.prepare(())  # truncated tokens are reported here
    with new_file(out) as write, counting("layers", None) as counter:
        for portion in portions(read_lists(text), _PORTION_TOKENS):
            for layers in _layers(bilm, portion, state):
                write(str(n_lines), layers.detach().cpu().numpy())
                n_lines += 1
            cut = [token for token in chain.from_iterable(portion) if is_truncated(token, most)]
            n_cut, example = n_cut + len(cut), example or next(iter(cut), "")
            n_tokens += sum(map(len, portion))
            counter.update(sum(map(len, portion)))
        if not n_lines:
            raise UserError(f"{text}: no line in it")
    if n_cut:
        say(f"{text}: {describe_truncated('tokens', n_cut, example, most)}")
    return n_tokens


def _layers(bilm: BiLM, sentences: list[list[str]], state: str) -> Iterator[Tensor]:
    """The layers of some lines, in order."""
    if state == "carry":  # one stream
        found = iter([bilm.layers([sentence], state)[0] for sentence in sentences if sentence])
    else:
        found = iter(bilm.layers([sentence for sentence in sentences if sentence], state))
    for sentence in sentences:
        yield next(found) if sentence else torch.empty(bilm.n_layers, 0, bilm.dim)
