"""Spans of a document: enumeration, head attention, and the best spans that do not cross.

C is the number of all spans, K of those that are kept, n of the document's tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

_DISTANCES = torch.tensor([1, 2, 3, 4, 5, 8, 16, 32, 64])
N_DISTANCES = len(_DISTANCES)


def all_spans(mask: Tensor, max_width: int) -> tuple[Tensor, Tensor]:
    """First and last token, counted over the document, of every span of at most ``max_width`` tokens of a sentence.

    Args:
        mask: bool ``[B, T]``, the tokens of each sentence.
        max_width: tokens of the widest span.

    Returns:
        two long ``[C]``, in order of the first token, then of the last.
    """
    sentence = torch.arange(len(mask), device=mask.device).unsqueeze(1).expand_as(mask)[mask]  # [n]
    tokens = torch.arange(len(sentence), device=mask.device)
    last = tokens.unsqueeze(1) + torch.arange(max_width, device=mask.device)  # [n, W]
    inside = last < len(sentence)
    inside &= sentence[last.clamp_max(len(sentence) - 1)] == sentence.unsqueeze(1)
    first = tokens.unsqueeze(1).expand_as(last)
    return first[inside], last[inside]


def head_attention(x: Tensor, scores: Tensor, first: Tensor, last: Tensor, max_width: int) -> Tensor:
    """Each span's words, weighted by the softmax of their scores within the span: ``[C, E]``.

    Args:
        x: float ``[n, E]``, the document's words.
        scores: float ``[n]``.
        first: long ``[C]``, first token of each span.
        last: long ``[C]``, last token.
        max_width: tokens of the widest span.
    """
    tokens = first.unsqueeze(1) + torch.arange(max_width, device=x.device)  # [C, W]
    inside = tokens <= last.unsqueeze(1)
    tokens = torch.minimum(tokens, last.unsqueeze(1))
    weights = scores[tokens].masked_fill(~inside, -torch.inf).softmax(dim=1)  # [C, W]
    sums = weights.new_zeros(len(first), x.shape[1])
    for k in range(max_width):  # a column at a time: no [C, W, E]
        sums = torch.addcmul(sums, weights[:, k : k + 1], x[tokens[:, k]])
    return sums


def best_spans(scores: Tensor, first: Tensor, last: Tensor, n: int) -> Tensor:
    """The best spans of which none crosses a better one.

    Two spans cross if they overlap and neither contains the other.

    Args:
        scores: float ``[C]``.
        first: long ``[C]``, first token of each span.
        last: long ``[C]``, last token.
        n: most spans to keep.

    Returns:
        long ``[K]``, indices of the spans, ascending; K is at most n.
    """
    starts, ends = first.tolist(), last.tolist()
    kept: list[int] = []
    furthest: dict[int, int] = {}  # by first token: the last token of the widest kept span
    nearest: dict[int, int] = {}  # by last token: the first token of the widest kept span
    for k in scores.argsort(descending=True, stable=True).tolist():
        if len(kept) == n:
            break
        start, end = starts[k], ends[k]
        crosses = any(furthest.get(token, -1) > end for token in range(start + 1, end + 1)) or any(
            nearest.get(token, start) < start for token in range(start, end)
        )
        if not crosses:
            kept.append(k)
            furthest[start] = max(furthest.get(start, end), end)
            nearest[end] = min(nearest.get(end, start), start)
    return torch.tensor(sorted(kept), dtype=torch.long, device=scores.device)


def antecedent_indices(spans: Tensor, n: int) -> Tensor:
    """The n spans before each span, nearest first: long ``[R]`` to ``[R, n]``, negative where there is none."""
    return spans.unsqueeze(1) - torch.arange(1, n + 1, device=spans.device)


def distance_bucket(distance: Tensor) -> Tensor:
    """The bucket of each distance, of any shape.

    0 to 3 for distances 1 to 4, then 4 for 5 to 7, 5 for 8 to 15, 6 for 16 to 31, 7 for 32 to 63, and 8 from 64 on.
    """
    return torch.bucketize(distance, _DISTANCES.to(distance.device), right=True) - 1
