"""Packs: a tokenised text encoded once as word ids, in a folder of compressed files that is easy to move.

``pack.json`` says what there is and has the digest of each other file. ``words.xz`` holds the distinct words, one a
line: the two sentence marks, then the words of the training text by falling frequency, then those of the held-out text
alone. The ids of a text follow each other in files of limited size, each an LZMA stream of numbers of 16 bits: 0 ends a
sentence, k + 1 is word k, and 65,535 stands for a rarer word, whose id follows after the block's other numbers (all
upper halves, then all lower ones).
"""

from __future__ import annotations

import hashlib
import json
import lzma
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.data.corpus import LmVocabulary, read_sentences
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.files import MAX_JSON_BYTES, parse_json, read_bytes, write_bytes
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.pretraining.header import FORMAT, HEADER, SPLITS, PackHeader

Ids = NDArray[np.int32]

BEGIN, END = 0, 1
"""Ids of the sentence marks."""

_MAX_BYTES = 100_000_000  # of a file and of what it holds: twelve million ids are 72 million bytes at most
_RARE = 65_535  # stands for an id that 16 bits cannot hold
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 1, "pb": 1}]


@dataclass(frozen=True)
class Pack:
    """A text as word ids.

    Attributes:
        words: the distinct words; 0 and 1 are the sentence marks.
        shards: by split, the ids of each file of the text; each sentence ends with :data:`END`.
        ends: by split and shard, the places of these ends (a text may have the mark as a word).
        digest: of the whole pack.
    """

    words: list[str]
    shards: dict[str, list[Ids]]
    ends: dict[str, list[NDArray[np.int64]]]
    digest: str

    def n_positions(self, split: str) -> int:
        """Tokens and sentence ends of a split."""
        return sum(map(len, self.shards[split]))

    def vocabulary(self, max_size: int, min_count: int) -> LmVocabulary:
        """The most frequent words of the training text (see :meth:`LmVocabulary.from_counts`)."""
        counts = np.zeros(len(self.words), dtype=np.int64)
        for ids, ends in zip(self.shards["train"], self.ends["train"], strict=True):
            counts += np.bincount(ids, minlength=len(counts))
            counts[END] -= len(ends)
        return LmVocabulary.from_counts(
            Counter(dict(zip(self.words, counts.tolist(), strict=True))), max_size, min_count
        )

    def targets(self, vocabulary: LmVocabulary) -> Ids:
        """The softmax's id of each of the pack's words."""
        return np.array([vocabulary[word] for word in self.words], dtype=np.int32)


def write_pack(folder: Path, paths: Mapping[str, Sequence[Path]], tokens_a_file: int = 12_000_000) -> Pack:
    """Encode text files with one tokenised sentence a line; the header, without which there is no pack, comes last.

    Args:
        folder: to write to; made if it is missing, and must have no pack.
        paths: the files of ``train`` and ``heldout``.
        tokens_a_file: bound of the ids in one file.

    Raises:
        UserError: if a text cannot be read, a split has no sentence, or the folder has a pack or cannot be written.
    """
    if (folder / HEADER).exists():
        raise UserError(f"{folder / HEADER}: there is a pack already; choose another folder")
    provisional: dict[str, int] = {BEGIN_SENTENCE: BEGIN, END_SENTENCE: END}
    encoded = {split: [_encode(read_sentences(path), provisional) for path in paths[split]] for split in SPLITS}
    for split in SPLITS:
        if not any(len(ends) for _, ends in encoded[split]):
            raise UserError(f"there is no sentence in the {split} text ({', '.join(map(str, paths[split]))})")
    words, final_ids = _by_frequency(list(provisional), [ids for ids, _ in encoded["train"]])
    files = {"words.xz": _write(folder / "words.xz", lzma.compress("\n".join(words).encode(), preset=9))}
    shards: dict[str, list[Any]] = {split: [] for split in SPLITS}
    for split in SPLITS:
        for number, (ids, ends) in enumerate(encoded[split]):
            symbols = final_ids[ids] + 1
            symbols[ends] = 0
            names = []
            for part, start in enumerate(range(0, len(symbols), tokens_a_file)):
                names.append(f"{split}-{number:02}-{part:02}.xz")
                content = _compress(symbols[start : start + tokens_a_file])
                files[names[-1]] = _write(folder / names[-1], content)
            shards[split].append(names)
    header = {"format": FORMAT, "words": len(words), "shards": shards, "files": files}
    _write(folder / HEADER, (json.dumps(header, indent=1) + "\n").encode())
    return read_pack(folder)


def read_pack(folder: Path) -> Pack:
    """Read and check a pack.

    Raises:
        UserError: naming the file that is missing, truncated or damaged, or the id that no word has.
    """
    path = folder / HEADER
    raw = read_bytes(path, MAX_JSON_BYTES)
    header = PackHeader.of(parse_json(raw, path), path)
    words = _words(_read(folder, "words.xz", header.files), folder / "words.xz", header.n_words)
    shards: dict[str, list[Ids]] = {split: [] for split in SPLITS}
    all_ends: dict[str, list[NDArray[np.int64]]] = {split: [] for split in SPLITS}
    for split in SPLITS:
        for names in header.shards[split]:
            parts = [_decompress(_read(folder, name, header.files), folder / name, len(words)) for name in names]
            symbols = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
            ends = np.flatnonzero(symbols == 0)
            if len(symbols) and (not len(ends) or ends[-1] != len(symbols) - 1):
                raise UserError(f"{folder / names[-1]}: truncated: its last sentence has no end")
            symbols -= 1
            symbols[ends] = END
            shards[split].append(symbols)
            all_ends[split].append(ends)
        if not any(map(len, shards[split])):
            raise UserError(f"{path}: a pack without {split} text")
    return Pack(words, shards, all_ends, hashlib.sha256(raw).hexdigest()[:16])


def _encode(sentences: Iterable[list[str]], ids: dict[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids by first appearance, with an end after each sentence; and where the ends are."""
    out, ends = array("q"), array("q")
    for sentence in sentences:
        out.extend([ids.setdefault(word, len(ids)) for word in sentence])
        ends.append(len(out))
        out.append(END)
    return np.frombuffer(out, dtype=np.int64), np.frombuffer(ends, dtype=np.int64)


def _by_frequency(words: list[str], train: Sequence[NDArray[np.int64]]) -> tuple[list[str], NDArray[np.int64]]:
    """The words in their final order, and the final id of each provisional one."""
    counts = sum((np.bincount(ids, minlength=len(words)) for ids in train), np.zeros(len(words), dtype=np.int64))
    frequencies = counts.tolist()
    order = [BEGIN, END, *sorted(range(2, len(words)), key=lambda k: (-frequencies[k], words[k]))]
    final = np.empty(len(words), dtype=np.int64)
    final[order] = np.arange(len(words))
    return [words[k] for k in order], final


def _compress(symbols: NDArray[np.int64]) -> bytes:
    rare = symbols[symbols >= _RARE]
    main = np.minimum(symbols, _RARE).astype("<u2")
    halves = np.concatenate([rare >> 16, rare & 0xFFFF]).astype("<u2")
    head = np.array([len(main)], dtype="<u8").tobytes()
    return lzma.compress(head + main.tobytes() + halves.tobytes(), filters=_FILTERS)


def _words(content: bytes, path: Path, n_words: int) -> list[str]:
    try:
        words = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error.reason})") from error
    if len(set(words)) != n_words or len(words) != n_words or words[:2] != [BEGIN_SENTENCE, END_SENTENCE]:
        raise UserError(f"{path}: expected the sentence marks and {n_words - 2:,} different words")
    return words


def _decompress(content: bytes, path: Path, n_words: int) -> Ids:
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


def _write(path: Path, content: bytes) -> dict[str, Any]:
    """Write a file whole or not at all; its entry in the header."""
    write_bytes(path, content, remedy="choose another folder for the pack")
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _read(folder: Path, name: str, files: Mapping[str, Any]) -> bytes:
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


def sentence_table(ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The first place and the number of words of each sentence of a shard."""
    start = 0
    for end in ends.tolist():
        yield start, end - start
        start = end + 1
