"""Arrays by key in files that only ever appear whole: what the layer store is written in.

``NAME.bin`` holds the rows of several arrays one after the other, ``NAME.idx`` says which key begins where. Both are
written under temporary names, synced and renamed, the index last; so a killed writer loses its unfinished shard and
nothing else, and several processes can write to one folder without knowing of each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from elmo_tasks.errors import UserError

VERSION = 2

_INDEX = np.dtype([("key", "V16"), ("start", "<i8"), ("rows", "<i8")])
_GIGABYTE = 1e9
_STALE_SECONDS = 3600

Array = NDArray[np.floating[Any]]


class Shards:
    """A folder of shards.

    Args:
        folder: made when first written to.
        row_shape: shape of one row of every array.
        dtype: ``float16`` or ``float32``.
        about: what the arrays are; kept beside them for whoever looks.
    """

    def __init__(self, folder: Path, row_shape: tuple[int, ...], dtype: str, about: dict[str, Any]) -> None:
        self.folder, self.row_shape, self.dtype, self.about = folder, row_shape, np.dtype(dtype), about
        self._where: dict[bytes, tuple[str, int, int]] = {}
        self._maps: dict[str, Array] = {}
        self._seen: set[str] = set()

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.row_shape)) * self.dtype.itemsize

    def __contains__(self, key: bytes) -> bool:
        return key in self._where

    def get(self, key: bytes) -> Array:
        """The array of a key, straight from the mapped file."""
        shard, start, n_rows = self._where[key]
        if shard not in self._maps:
            flat = np.memmap(self.folder / f"{shard}.bin", dtype=self.dtype, mode="r")
            self._maps[shard] = flat[: len(flat) // self._row_size * self._row_size].reshape(-1, *self.row_shape)
        return self._maps[shard][start : start + n_rows]

    def reserve(self, n_rows: int, limit_gb: float) -> str:
        """Make the folder and see that ``n_rows`` more have room.

        Returns:
            how much will be written, as a sentence for the user.

        Raises:
            UserError: if the limit or the disk would be exceeded, or the folder cannot be written.
        """
        have = sum(path.stat().st_size for path in self.folder.glob("*.bin")) if self.folder.is_dir() else 0
        need, root = n_rows * self.row_bytes, self.folder.parent
        text = f"{n_rows:,} tokens take {_size(need)} in bilm.store.dir={root}"
        if have + need > limit_gb * _GIGABYTE:
            raise UserError(
                f"{text}, beside {_size(have)} already there: more than bilm.store.limit_gb={limit_gb:g}; "
                "raise it, use a smaller data.fraction, or keep a biLM's token layer alone with bilm.store.keep=tokens"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._remove_stale()
            about = self.folder / "about.json"
            if not about.exists():
                about.write_text(json.dumps(self.about, indent=1) + "\n", "utf-8")
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise self._unwritable(error) from error
        if need > free:
            raise UserError(f"{text}, but only {_size(free)} are free; set bilm.store.dir to another disk")
        return text

    def append(self, keys: Sequence[bytes], arrays: Sequence[Array]) -> None:
        """Write one shard.

        Raises:
            UserError: if it cannot be written, or holds numbers beyond the dtype; nothing of it is left then.
        """
        name = uuid.uuid4().hex
        lengths = np.array([len(array) for array in arrays])
        index = np.empty(len(keys), dtype=_INDEX)
        index["key"] = np.array(keys, dtype="V16")
        index["rows"], index["start"] = lengths, lengths.cumsum() - lengths
        temporary = [self.folder / f"{name}.{suffix}.tmp" for suffix in ("bin", "idx")]
        try:
            sha = hashlib.sha256()
            with temporary[0].open("wb") as file:
                for array in arrays:
                    data = self._converted(array).tobytes()
                    sha.update(data)
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
            with temporary[1].open("wb") as file:
                header = {"version": VERSION, "arrays": len(keys), "sha256": sha.hexdigest()}
                file.write(json.dumps(header).encode() + b"\n" + index.tobytes())
                file.flush()
                os.fsync(file.fileno())
            for path in temporary:
                path.rename(path.with_suffix(""))
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            for path in temporary:
                path.unlink(missing_ok=True)
        self.scan()

    def _converted(self, array: Array) -> Array:
        largest = np.abs(array).max(initial=0)
        if not np.isfinite(largest):
            raise UserError("a layer holds numbers that are not finite")
        if largest > np.finfo(self.dtype).max:
            raise UserError(f"a layer holds {largest:g}, too large for {self.dtype}; set bilm.store.dtype=float32")
        return np.ascontiguousarray(array, dtype=self.dtype)

    def scan(self) -> None:
        """Take in the indices that have appeared since the last look; damaged ones are passed over."""
        for path in sorted(self.folder.glob("*.idx")) if self.folder.is_dir() else ():
            if path.name in self._seen:
                continue
            self._seen.add(path.name)
            for key, start, n_rows in self._entries(path):
                self._where[key] = (path.stem, start, n_rows)

    def _entries(self, path: Path) -> list[tuple[bytes, int, int]]:
        head, _, body = path.read_bytes().partition(b"\n")
        binary = path.with_suffix(".bin")
        n_rows = binary.stat().st_size // self.row_bytes if binary.exists() else 0
        try:
            header = json.loads(head)
            entries: list[tuple[bytes, int, int]] = np.frombuffer(body, _INDEX, count=header["arrays"]).tolist()
        except (ValueError, KeyError, TypeError):
            return []
        if header.get("version") != VERSION or any(start + rows > n_rows for _, start, rows in entries):
            return []
        with binary.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == header.get("sha256")
        if not whole:
            tqdm.write(f"layer store: {binary} is damaged; what it held is computed again")
        return entries if whole else []

    @property
    def _row_size(self) -> int:
        return int(np.prod(self.row_shape))

    def _remove_stale(self) -> None:
        """Remove what killed writers left behind, once it is too old to belong to a living one."""
        for path in self.folder.glob("*.tmp"):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                path.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"bilm.store.dir={self.folder.parent}: the layer store cannot be written ({error.strerror}); "
            "set bilm.store.dir to a folder with room"
        )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / _GIGABYTE:.2f} GB" if n_bytes >= _GIGABYTE else f"{n_bytes / 1e6:.1f} MB"
