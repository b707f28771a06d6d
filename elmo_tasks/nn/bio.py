"""The best sequence of IOB2 tags without transition scores."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.nn.viterbi import backtrace


@torch.no_grad()
def best_bio_tags(scores: Tensor, mask: Tensor, tags: Sequence[str]) -> list[list[int]]:
    """Viterbi decoding under one rule: I-X comes only after B-X or I-X.

    Without transition scores a step needs no pairs of tags: O and B-X follow the best of all tags, I-X follows the
    better of B-X and I-X.

    Args:
        scores: float ``[B, T, K]``.
        mask: bool ``[B, T]``, True from the first token to the last.
        tags: the K tags: O, then B-X and I-X of each label, side by side.

    Returns:
        the tag numbers of each text; any one of equally good sequences.
    """
    tag_numbers = torch.arange(len(tags), device=scores.device)
    begin, inside = tag_numbers[1::2], tag_numbers[2::2]
    assert tags[0] == "O"
    assert all(tags[b] == f"B-{tags[i][2:]}" for b, i in zip(begin, inside, strict=True))
    n_texts, n_tokens, _ = scores.shape
    total = scores[:, 0].clone()
    total[:, inside] = -torch.inf
    identity = tag_numbers.expand(n_texts, -1)
    pointers = []
    for t in range(1, n_tokens):
        best, origin = total.max(dim=1, keepdim=True)
        from_begin = total[:, begin] >= total[:, inside]
        before, pointer = best.expand_as(total).clone(), origin.expand_as(total).clone()
        before[:, inside] = torch.maximum(total[:, begin], total[:, inside])
        pointer[:, inside] = torch.where(from_begin, begin, inside)
        valid = mask[:, t : t + 1]
        total = torch.where(valid, before + scores[:, t], total)
        pointers.append(torch.where(valid, pointer, identity))  # on padding a tag points to itself
    return backtrace(total.argmax(dim=1), pointers, mask)
