"""Batches of items of similar length, within bounds of items and of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from elmo_tasks.errors import UserError

if TYPE_CHECKING:
    from elmo_tasks.data.reader import Reader


def item_lengths(reader: Reader[Any], item: Any) -> tuple[int, ...]:
    """The number of tokens of each text of an item; for a document one number, for all its padded sentences."""
    lengths = tuple(map(len, reader.texts(item)))
    return (len(lengths) * max(lengths),) if reader.documents else lengths


def check_length(reader: Reader[Any], n_tokens: int, batch_tokens: int, name: str) -> None:
    """Check that an item is no longer than a batch may be.

    Args:
        reader: that has read it.
        n_tokens: of the item.
        batch_tokens: of a batch at most.
        name: of the item, if it is not the longest that the reader has read, whose place is known.

    Raises:
        UserError: naming the item.
    """
    if n_tokens > batch_tokens:
        longest, place = reader.longest
        raise UserError(
            f"{place if longest == n_tokens else name}: {n_tokens:,} tokens, more than a batch may have; leave it out, "
            f"or set task.training.batch_tokens={n_tokens} if the memory allows"
        )


def make_batches(
    chosen: Iterable[int], lengths: Sequence[tuple[int, ...]], *, batch_size: int, batch_tokens: int
) -> list[list[int]]:
    """Some items in order of length, in batches within both bounds.

    Args:
        chosen: places in ``lengths``.
        lengths: see :func:`item_lengths`.
        batch_size: items of a batch at most.
        batch_tokens: tokens of a batch at most, including padding; a longer item is a batch by itself.
    """
    batches: list[list[int]] = []
    longest: tuple[int, ...] = ()
    for k in sorted(chosen, key=lambda k: sum(lengths[k])):
        longer = tuple(map(max, zip(longest, lengths[k], strict=True))) if longest else lengths[k]
        size = len(batches[-1]) + 1 if batches else 0
        if not batches or size > batch_size or size * sum(longer) > batch_tokens:
            batches.append([])
            longer = lengths[k]
        batches[-1].append(k)
        longest = longer
    return batches
