"""The content of a layer store: its folders, their sizes, which can be removed, and whether the data are intact."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.files import read_object
from elmo_tasks.store.locks import last_used, nobody_uses
from elmo_tasks.store.shard import VERSION, BadShardError, ShardIndex, readable_indexes

_DAY = 86_400


@dataclass(frozen=True)
class StoredFolder:
    """A folder of shards: the layers of one encoder under one state policy in one number format.

    Attributes:
        folder: its place below ``bilm.store.dir``.
        encoder: the digest of the encoder, which rows have under ``bilm.digest``.
        keep: ``layers`` or ``tokens``; ``state``: the state policy; ``dtype``: the number format.
        version: of the layer store that wrote it.
        n_shards: files of numbers; ``n_keys``: sentences (or words); ``n_rows``: tokens (or words).
        n_bytes: of all files.
        idle_days: since a process last began to use it.
        used: whether a process uses it now.
    """

    folder: Path
    encoder: str
    keep: str
    state: str
    dtype: str
    version: int
    n_shards: int
    n_keys: int
    n_rows: int
    n_bytes: int
    idle_days: float
    used: bool


def inventory(root: Path) -> list[StoredFolder]:
    """All folders of a layer store, the largest first.

    Raises:
        UserError: if there is no such folder, or it cannot be read.
    """
    if not root.is_dir():
        raise UserError(f"{root}: no such folder; expected the one that bilm.store.dir names (outputs/layers)")
    try:
        described = {path.parent: _about(path) for path in sorted(root.glob("*/about.json"))}
        found = [_stored_folder(folder, about) for folder, about in described.items() if about is not None]
    except OSError as error:
        raise UserError(f"{root}: the layer store cannot be read ({error.strerror})") from error
    return sorted(found, key=lambda kept: -kept.n_bytes)


def removable(found: list[StoredFolder], *, encoders: tuple[str, ...], idle_days: float | None) -> list[StoredFolder]:
    """The folders that no process uses and that meet all given conditions, and all unused ones of other versions.

    Without a condition, the unused folders of other versions alone.

    Args:
        found: all folders of the store.
        encoders: beginnings of digests; empty for no such condition.
        idle_days: least days since the last use; None for no such condition.
    """
    return [
        kept
        for kept in found
        if not kept.used
        and (
            kept.version != VERSION
            or (
                (encoders or idle_days is not None)
                and (not encoders or kept.encoder.startswith(encoders))
                and (idle_days is None or kept.idle_days >= idle_days)
            )
        )
    ]


def remove(kept: StoredFolder) -> bool:
    """Remove a folder, unless a process has started to use it; return whether it is gone.

    Raises:
        UserError: if it cannot be removed.
    """
    with nobody_uses(kept.folder) as free:
        if not free:
            return False
        try:
            (kept.folder / "about.json").unlink(missing_ok=True)  # first: what is left of it is no store then
            shutil.rmtree(kept.folder)
        except OSError as error:
            raise UserError(f"{kept.folder}: cannot be removed ({error.strerror})") from error
    return True


def verify(kept: StoredFolder) -> Iterator[tuple[Path, str]]:
    """Read all shards of a folder through; yield the index of each damaged one, with the reason.

    Raises:
        UserError: if a shard cannot be read, which says nothing about its content.
    """
    for index in sorted(kept.folder.glob("*.idx")):
        try:
            ShardIndex.read(index).verify()
        except BadShardError as reason:
            yield index, str(reason)
        except FileNotFoundError:
            continue  # another process has removed it
        except OSError as error:
            raise UserError(f"{index}: cannot be read ({error.strerror})") from error


def _stored_folder(folder: Path, about: dict[str, Any]) -> StoredFolder:
    n_rows = [index.entries["rows"] for index in readable_indexes(folder)]
    with nobody_uses(folder) as free:
        used = not free
    return StoredFolder(
        folder=folder,
        encoder=about["bilm"],
        keep=str(about.get("keep", "?")),
        state=str(about.get("state", "-")),
        dtype=str(about.get("dtype", "?")),
        version=about["version"],
        n_shards=sum(1 for _ in folder.glob("*.idx")),
        n_keys=sum(map(len, n_rows)),
        n_rows=sum(int(each.sum()) for each in n_rows),
        n_bytes=sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
        idle_days=max(0.0, (time.time() - last_used(folder)) / _DAY),
        used=used,
    )


def _about(path: Path) -> dict[str, Any] | None:
    """What a folder of shards says of itself; None if it is not a folder of shards."""
    try:
        return read_object(path, {"bilm": str, "version": int})
    except UserError:
        return None
