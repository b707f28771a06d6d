"""Arrays by key in a folder of shards, each of which appears whole or not at all: the files of the layer store.

A killed writer loses its unfinished shard and nothing else, and several processes can fill one folder independently. A
bad shard is removed, and the user is told.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.errors import UserError
from elmo_tasks.files import free_bytes, read_json, remove_stale, write_text
from elmo_tasks.formatting import format_bytes
from elmo_tasks.progress import say
from elmo_tasks.store.index import Index
from elmo_tasks.store.locks import Lock, claim, mark_in_use
from elmo_tasks.store.shard import VERSION, Array, BadShardError, ShardIndex, write_shard
from elmo_tasks.store.unfinished import remove_unfinished

_GIGABYTE = 1e9
_STALE_SECONDS = 3600
_MAX_ABOUT_BYTES = 100_000


class Shards:
    """A folder of shards.

    Args:
        folder: made when first written to.
        row_shape: shape of one row of every array.
        dtype: ``float16`` or ``float32``.
        about: a description of the arrays, which is written beside them.
        unit: what a row is of, in messages: ``tokens`` or ``words``.
    """

    def __init__(
        self, folder: Path, row_shape: tuple[int, ...], dtype: str, about: dict[str, Any], unit: str = "tokens"
    ) -> None:
        self.folder, self.row_shape, self.dtype, self.about = folder, row_shape, np.dtype(dtype), about
        self.unit = unit
        self._index = Index()
        self._arrays: list[Array] = []  # all rows of each shard
        self._seen: set[str] = set()
        self._mutex = RLock()  # of the threads that use this object
        self._lock: Lock | None = None  # says that this process uses the folder, as long as this object is there

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or one in another process, opens the folder by itself."""
        return _opened, (self.folder, self.row_shape, self.dtype.name, self.about, self.unit)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.row_shape)) * self.dtype.itemsize

    def contains(self, keys: Sequence[bytes]) -> NDArray[np.bool_]:
        """Which of some keys have an array, bool ``[len(keys)]``."""
        with self._mutex:
            return self._index.contains(keys)

    def get(self, key: bytes) -> Array:
        """The array ``[n, *row_shape]`` of a key, straight from the mapped file.

        Raises:
            KeyError: if there is none.
        """
        with self._mutex:
            place = self._index.find(key)
            if place is None:
                raise KeyError(key)
            return self._arrays[place.shard][place.start : place.start + place.rows]

    def reserve(self, n_rows: int, limit_gb: float) -> str:
        """Make the folder and check that there is room for ``n_rows`` more.

        Returns:
            how much will be written, as a sentence for the user.

        Raises:
            UserError: if the limit or the disk would be exceeded, or the folder cannot be written.
        """
        try:
            remove_unfinished(self.folder, _STALE_SECONDS)
        except OSError as error:
            raise self._unwritable(error) from error
        text = self.check_room(n_rows, limit_gb)
        try:
            if not self.folder.is_dir():
                self._report_other_versions()
            self.folder.mkdir(parents=True, exist_ok=True)
            self._describe()
        except OSError as error:
            raise self._unwritable(error) from error
        return text

    def _describe(self) -> None:
        """Write what the folder holds, unless it says so already."""
        path, text = self.folder / "about.json", json.dumps(self.about, indent=1) + "\n"
        content = text.encode()
        lock = claim(self.folder, "about")
        if lock is None:  # another process writes the same
            return
        if lock.holds:
            remove_stale(path, 0)
        of_our_size = not path.is_symlink() and path.is_file() and path.stat().st_size == len(content)
        if not of_our_size or path.read_bytes() != content:  # nothing is read that someone else may have put there
            write_text(path, text, "set bilm.store.dir to another folder")
        lock.release()

    def check_room(self, n_rows: int, limit_gb: float) -> str:
        """As :meth:`reserve`, without writing anything.

        Raises:
            UserError: if the limit or the disk would be exceeded, or cannot be looked up.
        """
        need, root = n_rows * self.row_bytes, self.folder.parent
        text = f"{n_rows:,} {self.unit} need {format_bytes(need)} in bilm.store.dir={root}"
        try:
            have = sum(map(_file_size, self.folder.glob("*.bin")))
            free = free_bytes(self.folder)
        except OSError as error:
            raise self._unwritable(error) from error
        if have + need > limit_gb * _GIGABYTE:
            raise UserError(
                f"{text} in addition to the {format_bytes(have)} stored: more than bilm.store.limit_gb={limit_gb:g}; "
                "raise it, use a smaller data.fraction, or keep only a biLM's token layer with bilm.store.keep=tokens"
            )
        if need > free:
            raise UserError(f"{text}, but only {format_bytes(free)} are free; set bilm.store.dir to another disk")
        return text

    def append(self, keys: Sequence[bytes], arrays: Sequence[Array], sample: Sequence[Sequence[str]] = ()) -> None:
        """Write one shard; ``sample`` has the tokens of some arrays.

        Raises:
            UserError: if it cannot be written, or holds numbers beyond the dtype; nothing of it is left then.
        """
        try:
            write_shard(self.folder, keys, [len(array) for array in arrays], map(self._converted, arrays), sample)
        except OSError as error:
            raise self._unwritable(error) from error
        self.scan()

    def _converted(self, array: Array) -> Array:
        largest = np.abs(array).max(initial=0)
        if not np.isfinite(largest):
            raise UserError("a layer holds numbers that are not finite")
        if largest > np.finfo(self.dtype).max:
            raise UserError(f"a layer holds {largest:g}, too large for {self.dtype}; set bilm.store.dtype=float32")
        return np.ascontiguousarray(array, dtype=self.dtype)

    def scan(self) -> None:
        """Add the shards that have appeared since the last scan; remove bad ones and tell the user.

        Raises:
            UserError: if the folder cannot be read.
        """
        with self._mutex:
            if not self.folder.is_dir():
                return
            if self._lock is None:
                self._lock = mark_in_use(self.folder)
            for path in sorted(self.folder.glob("*.idx")):
                if path.name in self._seen:
                    continue
                self._seen.add(path.name)
                try:
                    index = ShardIndex.read(path)
                    numbers = index.map_numbers(self.row_shape, self.dtype)
                except BadShardError as reason:
                    _remove(path, str(reason))
                except FileNotFoundError:
                    continue  # another process found it, removed it and told the user
                except OSError as error:
                    raise UserError(f"{path}: the layer store cannot be read ({error.strerror})") from error
                else:
                    self._index.add(len(self._arrays), index.entries)
                    self._arrays.append(numbers)

    def _report_other_versions(self) -> None:
        """Tell the user of folders in which another version of the layer store kept the same arrays."""
        for path in sorted(self.folder.parent.glob("*/about.json")):
            with suppress(UserError, TypeError):  # whatever else may lie there
                about = read_json(path, _MAX_ABOUT_BYTES)
                if {**about, "version": VERSION} == self.about:
                    say(
                        f"layer store: {path.parent} was written by version {about.get('version')} of the layer store "
                        f"(this is version {VERSION}); it is not read and can be removed"
                    )

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(
            f"bilm.store.dir={self.folder.parent}: the layer store cannot be written ({error.strerror}); "
            "set bilm.store.dir to a folder with room"
        )


def _opened(*arguments: Any) -> Shards:
    shards = Shards(*arguments)
    shards.scan()
    return shards


def _remove(index: Path, reason: str) -> None:
    """Remove a bad shard. Several processes may find it; the first of them tells the user."""
    done = "is removed"
    try:
        index.unlink()
        index.with_suffix(".bin").unlink(missing_ok=True)
    except FileNotFoundError:
        return
    except OSError as error:
        done = f"cannot be removed ({error.strerror})"
    say(f"layer store: {index} {reason}; it {done}, and what is needed of it is computed again")


def _file_size(path: Path) -> int:
    """The size of a file, 0 if another process has removed it."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
