"""The files of a pack: its header, and word ids as compressed numbers with a digest of each file."""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.errors import UserError, quoted
from elmo_tasks.files import check_object, read_bytes, write_bytes

HEADER = "pack.json"
FORMAT = 1
SPLITS = ("train", "heldout")

Ids = NDArray[np.int32]

ID_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 1, "pb": 1}]
"""How LZMA compresses numbers of 16 bits."""

REMEDY = "choose another folder for the pack"

_MAX_BYTES = 100_000_000  # of a file and of what it holds: twelve million ids are 72 million bytes at most
_RARE = 65_535  # stands for a symbol that 16 bits cannot hold


@dataclass(frozen=True)
class PackHeader:
    """What ``pack.json`` says: the number of words, the names of each shard's files, and each file's entry."""

    n_words: int
    shards: dict[str, list[list[str]]]
    files: dict[str, Any]

    @classmethod
    def of(cls, content: Any, path: Path) -> PackHeader:
        """Check the content of a file.

        Raises:
            UserError: if it is not the header of a pack.
        """
        header = check_object(content, str(path), {"format": int, "words": int, "shards": dict, "files": dict})
        if header["format"] != FORMAT:
            raise UserError(f"{path}: format {header['format']}, but this version reads format {FORMAT}")
        shards = check_object(header["shards"], f"{path}: shards", dict.fromkeys(SPLITS, list))
        for split in SPLITS:
            for names in shards[split]:
                if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                    raise UserError(f"{path}: {split} must be lists of names of files, found {quoted(names)}")
        for name, entry in header["files"].items():
            if name != Path(name).name:
                raise UserError(f"{path}: {quoted(name)} is not the name of a file beside it")
            check_object(entry, f"{path}: {quoted(name)}", {"bytes": int, "sha256": str})
        return cls(header["words"], shards, header["files"])


def write_compressed(path: Path, content: bytes, filters: list[dict[str, int]] | None = None) -> dict[str, Any]:
    """Write a compressed file whole or not at all; return its entry in the header."""
    compressed = lzma.compress(content, preset=None if filters else 9, filters=filters)
    write_bytes(path, compressed, remedy=REMEDY)
    return {"bytes": len(compressed), "sha256": hashlib.sha256(compressed).hexdigest()}


def read_compressed(folder: Path, name: str, files: Mapping[str, Any]) -> bytes:
    """What a compressed file holds, if it is the one of its entry in the header.

    Raises:
        UserError: if it has no entry, is missing, has another size or digest, or cannot be decompressed.
    """
    path = folder / name
    if name not in files:
        raise UserError(f"{folder / HEADER}: files has no {quoted(name)}")
    n_bytes, digest = files[name]["bytes"], files[name]["sha256"]
    content = read_bytes(path, _MAX_BYTES)
    if len(content) != n_bytes:
        raise UserError(f"{path}: truncated or another file: {len(content):,} bytes, expected {n_bytes:,}")
    if hashlib.sha256(content).hexdigest() != digest:
        raise UserError(f"{path}: damaged: its contents do not have the digest in {HEADER}")
    try:
        reader = lzma.LZMADecompressor()
        found = reader.decompress(content, _MAX_BYTES)
    except lzma.LZMAError as error:
        raise UserError(f"{path}: cannot be read ({error})") from error
    if not reader.eof:
        raise UserError(f"{path}: truncated, or more than {_MAX_BYTES:,} bytes")
    return found


def to_bytes(symbols: NDArray[np.int64]) -> bytes:
    """A text as numbers of 16 bits, after their count; of its symbols 0 ends a sentence and k + 1 is word k."""
    rare = symbols[symbols >= _RARE]
    main = np.minimum(symbols, _RARE).astype("<u2")
    halves = np.concatenate([rare >> 16, rare & 0xFFFF]).astype("<u2")
    head = np.array([len(main)], dtype="<u8").tobytes()
    return head + main.tobytes() + halves.tobytes()


def to_symbols(content: bytes, path: Path, n_words: int) -> Ids:
    """The symbols of such a text.

    Raises:
        UserError: naming the file, if a length does not fit, or there is no such word.
    """
    if len(content) < 8 or len(content) % 2:
        raise UserError(f"{path}: damaged: {len(content):,} bytes are not a count and numbers of 16 bits")
    n_main = int(np.frombuffer(content[:8], dtype="<u8")[0])
    numbers = np.frombuffer(content[8:], dtype="<u2")
    symbols = numbers[:n_main].astype(np.int32)
    places = np.flatnonzero(symbols == _RARE)
    if len(numbers) != n_main + 2 * len(places):
        raise UserError(f"{path}: damaged: the ids of {len(places):,} rare words are not those that it holds")
    upper, lower = numbers[n_main:].astype(np.uint32).reshape(2, -1)
    rare = (upper << 16) | lower
    largest = max(int(rare.max(initial=0)), int(np.delete(symbols, places).max(initial=0)))
    if largest > n_words:
        raise UserError(f"{path}: does not fit its vocabulary: id {largest - 1:,}, but words.xz has {n_words:,} words")
    symbols[places] = rare
    return symbols
