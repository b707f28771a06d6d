"""The items of a task's splits: read, the reader fitted, and dev cut off train where a data set has none."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from random import Random
from typing import Any

from elmo_tasks.data.reader import Reader
from elmo_tasks.data.source import SPLITS, Source
from elmo_tasks.errors import UserError

_DEV_SEED = 0  # every run of a data set has the same dev items, whatever its own seed


def read_splits(
    reader: Reader[Any], source: Source, dev_share: float | None, splits: Sequence[str] = SPLITS
) -> dict[str, list[Any]]:
    """The items of train and of those of the other ``splits`` that are there.

    The reader is fitted to all training items, before dev is cut off them or a fraction is taken, so that label sets
    depend on nothing but the file.

    Raises:
        UserError: for bad input, and if there is no dev set, or two of them.
    """
    check_dev(source, dev_share)
    items = {split: source.read(reader, split) for split in SPLITS if split in source.splits and split in splits}
    reader.fit(items["train"])
    for split in SPLITS[1:]:
        if split in items:
            reader.check(items[split], split)
    if dev_share is not None:
        train, dev = cut_dev(reader, items.pop("train"), dev_share)
        items = {"train": train, "dev": dev, **items}
    return items


def check_dev(source: Source, dev_share: float | None) -> None:
    """Check that there is exactly one dev set.

    Raises:
        UserError: if there is none, or a second one.
    """
    if dev_share is None and "dev" not in source.splits:
        raise UserError(
            f"there is no dev set: set {source.key}.dev, or task.dev_share=0.1 to take a tenth of the training items"
        )
    if dev_share is not None and "dev" in source.splits:
        raise UserError(
            f"task.dev_share={dev_share:g} cuts dev off train, but there is a dev set; set {source.key}.dev=null or "
            "task.dev_share=null"
        )


def cut_dev(reader: Reader[Any], train: list[Any], dev_share: float) -> tuple[list[Any], list[Any]]:
    """Train without dev, and dev: about ``dev_share`` of the items, in their order; a reader's groups stay whole.

    Raises:
        UserError: if one of the two would be empty.
    """
    groups: dict[Hashable, int] = {}
    for item in train:
        group = reader.group(item)
        groups[group] = groups.get(group, 0) + 1
    wanted, n_dev = dev_share * len(train), 0
    chosen: set[Hashable] = set()
    names = list(groups)
    for place in Random(_DEV_SEED).sample(range(len(names)), len(names)):
        if n_dev >= wanted:
            break
        chosen.add(names[place])
        n_dev += groups[names[place]]
    if not 0 < n_dev < len(train):
        raise UserError(
            f"task.dev_share={dev_share:g} leaves {len(train) - n_dev:,} training items and {n_dev:,} dev items; "
            "expected some of each"
        )
    dev = [reader.group(item) in chosen for item in train]
    return (
        [item for item, is_dev in zip(train, dev, strict=True) if not is_dev],
        [item for item, is_dev in zip(train, dev, strict=True) if is_dev],
    )


def take_fraction(items: list[Any], fraction: float, seed: int) -> list[Any]:
    """A fraction of some items in their order; the same ones for one seed.

    Raises:
        UserError: if it has no item.
    """
    n_kept = round(len(items) * fraction)
    if n_kept == 0:
        raise UserError(
            f"data.fraction={fraction:g} leaves none of the {len(items):,} training items; "
            f"set it to {1 / len(items):.2g} or more"
        )
    kept = sorted(Random(seed).sample(range(len(items)), n_kept))
    return [items[k] for k in kept]
