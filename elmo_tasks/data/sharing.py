"""A batch shared by several processes: each has some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Placeholder:
    """Any item, in a process that has no row of a batch; its batch has ``is_placeholder`` and counts for nothing."""

    item: Any


def process_rows(
    items: Sequence[Any], batches: Sequence[Sequence[int]], *, n: int, rank: int
) -> tuple[list[Any], list[list[int]]]:
    """Every n-th row of each batch, from row ``rank`` on; every process has the same number of batches.

    Args:
        items: of a split.
        batches: numbers of the items of each batch.
        n: processes that share the batches.
        rank: of this one.

    Returns:
        the items with a :class:`Placeholder` as the last, and the numbers of this process's items in each batch.
    """
    return [*items, Placeholder(items[0])], [list(batch[rank::n]) or [len(items)] for batch in batches]
