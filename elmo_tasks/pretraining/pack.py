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
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.data.corpus import LmVocabulary, read_sentences
from elmo_tasks.data.leaks import refuse_leaks
from elmo_tasks.errors import UserError
from elmo_tasks.files import MAX_JSON_BYTES, parse_json, read_bytes, write_bytes
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.pretraining.header import FORMAT, HEADER, SPLITS, PackHeader
from elmo_tasks.pretraining.pack_files import (
    ID_FILTERS,
    REMEDY,
    Ids,
    read_compressed,
    to_bytes,
    to_symbols,
    write_compressed,
)

BEGIN, END = 0, 1
"""Ids of the sentence marks."""


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
        UserError: if a text cannot be read or is in both splits, a split has no sentence, or the folder has a pack or
            cannot be written.
    """
    if (folder / HEADER).exists():
        raise UserError(f"{folder / HEADER}: there is a pack already; choose another folder")
    refuse_leaks(paths)
    provisional: dict[str, int] = {BEGIN_SENTENCE: BEGIN, END_SENTENCE: END}
    encoded = {split: [_encode(read_sentences(path), provisional) for path in paths[split]] for split in SPLITS}
    for split in SPLITS:
        if not any(len(ends) for _, ends in encoded[split]):
            raise UserError(f"there is no sentence in the {split} text ({', '.join(map(str, paths[split]))})")
    words, final_ids = _by_frequency(list(provisional), [ids for ids, _ in encoded["train"]])
    files = {"words.xz": write_compressed(folder / "words.xz", "\n".join(words).encode())}
    shards: dict[str, list[Any]] = {split: [] for split in SPLITS}
    for split in SPLITS:
        for number, (ids, ends) in enumerate(encoded[split]):
            symbols = final_ids[ids] + 1
            symbols[ends] = 0
            names = []
            for part, start in enumerate(range(0, len(symbols), tokens_a_file)):
                names.append(f"{split}-{number:02}-{part:02}.xz")
                content = to_bytes(symbols[start : start + tokens_a_file])
                files[names[-1]] = write_compressed(folder / names[-1], content, ID_FILTERS)
            shards[split].append(names)
    header = {"format": FORMAT, "words": len(words), "shards": shards, "files": files}
    write_bytes(folder / HEADER, (json.dumps(header, indent=1) + "\n").encode(), remedy=REMEDY)
    return read_pack(folder)


def read_pack(folder: Path) -> Pack:
    """Read and check a pack.

    Raises:
        UserError: naming the file that is missing, truncated or damaged, or the id that no word has.
    """
    path = folder / HEADER
    raw = read_bytes(path, MAX_JSON_BYTES)
    header = PackHeader.of(parse_json(raw, path), path)
    words = _words(read_compressed(folder, "words.xz", header.files), folder / "words.xz", header.n_words)
    shards: dict[str, list[Ids]] = {split: [] for split in SPLITS}
    all_ends: dict[str, list[NDArray[np.int64]]] = {split: [] for split in SPLITS}
    for split in SPLITS:
        for names in header.shards[split]:
            parts = [
                to_symbols(read_compressed(folder, name, header.files), folder / name, len(words)) for name in names
            ]
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


def _words(content: bytes, path: Path, n_words: int) -> list[str]:
    try:
        words = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 ({error.reason})") from error
    if len(set(words)) != n_words or len(words) != n_words or words[:2] != [BEGIN_SENTENCE, END_SENTENCE]:
        raise UserError(f"{path}: expected the sentence marks and {n_words - 2:,} different words")
    return words


def sentence_table(ends: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The first place and the number of words of each sentence of a shard."""
    start = 0
    for end in ends.tolist():
        yield start, end - start
        start = end + 1
