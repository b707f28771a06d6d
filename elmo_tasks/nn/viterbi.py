"""The last part of Viterbi decoding, which does not depend on how tags are scored."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def backtrace(last: Tensor, pointers: Sequence[Tensor], mask: Tensor) -> list[list[int]]:
    """Follow the pointers back from the best last tag of each text.

    Args:
        last: long ``[B]``.
        pointers: long ``[B, K]`` for each token but the first: the best tag before each tag. On padding, a tag points
            to itself.
        mask: bool ``[B, T]``, True from the first token to the last.

    Returns:
        the tag numbers of each text.
    """
    path = [last]
    for pointer in reversed(pointers):
        path.append(pointer.gather(1, path[-1].unsqueeze(1)).squeeze(1))
    best_tags = torch.stack(path[::-1], dim=1).tolist()
    return [tags[:length] for tags, length in zip(best_tags, mask.sum(dim=1).tolist(), strict=True)]
