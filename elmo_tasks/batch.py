"""The batch types that data give to models, and the shape symbols of all docstrings.

========  =====================================================================
symbol    meaning
========  =====================================================================
``B``     texts of a batch
``T``     tokens of the longest text of the batch; ``Q`` of the longest question
``C``     character ids of the longest word of the batch (at most 50)
``W``     distinct words of a batch
``L``     layers of the biLM, including the token layer (3 for the paper's biLM)
``D``     width of a biLM layer, both directions (2 x projection; 1024 in the paper)
``P``     width of a biLM layer, one direction (D = 2 P)
``E``     width of the input of a task biRNN
``H``     width of the output of a task biRNN, both directions
``h``     cells of one direction (H = 2 h)
``K``     classes or tags of a task
``N``     what all texts have together: packed positions, or predicates
``N_p``   predicates of the sentence that has most
``S``     steps of a training window of a biLM
========  =====================================================================

In :mod:`elmo_tasks.nn`, P and Q are also the widths of the input and the output of any linear map. In
:mod:`elmo_tasks.bilm`, H is the number of LSTM cells of one direction. Its character CNN has further letters: E for the
size of a character embedding, F for all filters, V for the characters of the widest filter. So has coreference: C for
all spans of a document, K for those that are kept, A for the antecedents of each, M for gold mentions, D for the width
of a span vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from torch import Tensor

Movable = TypeVar("Movable", bound="OnDevice")

IGNORE_INDEX = -100
"""The label of a token or an item without one; PyTorch's losses ignore it."""


class OnDevice:
    """A dataclass whose tensors move together; Lightning calls :meth:`to`.

    Attributes:
        is_placeholder: whether several processes share the batch and this one has no row of it. What it computes then
            adds nothing to losses or scores.
    """

    is_placeholder = False

    def to(self: Movable, device: torch.device | str, **kwargs: Any) -> Movable:
        """Move each tensor field (and nested batch part) to ``device``, in place."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, (Tensor, OnDevice)):
                setattr(self, field.name, value.to(device, **kwargs))
        return self


@dataclass
class Text(OnDevice):
    """B token sequences, padded to the longest.

    Attributes:
        tokens: B lists of words.
        word_ids: long ``[B, T]``, rows in the word embedding, 0 on padding.
        char_ids: long ``[B, T, C]``, bilm-tf's character ids, 0 on padding.
        mask: bool ``[B, T]``, True where there is a token.
        layers: float ``[B, L, T, D]``, the frozen biLM's layers, zero on padding; None with ``placement=none``.
    """

    tokens: list[list[str]]
    word_ids: Tensor
    char_ids: Tensor
    mask: Tensor
    layers: Tensor | None

    @property
    def lengths(self) -> Tensor:
        """Tokens of each text, long ``[B]``."""
        return self.mask.sum(dim=1)


def mask_of(lengths: Tensor, n: int) -> Tensor:
    """Bool ``[B, n]``, True on the first ``lengths[b]`` positions of row b; lengths are long ``[B]``."""
    return torch.arange(n, device=lengths.device) < lengths.unsqueeze(1)


def pad_layers(layers: Sequence[Tensor]) -> Tensor:
    """The layers of B sentences (B > 0), each ``[L, T, D]`` with its own T: ``[B, L, T, D]``, zero on padding."""
    n_layers, _, dim = layers[0].shape
    padded = layers[0].new_zeros(len(layers), n_layers, max(x.shape[1] for x in layers), dim)
    for row, x in enumerate(layers):
        padded[row, :, : x.shape[1]] = x
    return padded
