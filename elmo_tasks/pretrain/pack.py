"""Packs: a tokenised text encoded once as word ids, in memory or in a folder of compressed files that is easy to move.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.data.corpus import LmVocabulary, read_sentences
from elmo_tasks.data.leaks import refuse_leaks
from elmo_tasks.errors import UserError
from elmo_tasks.files import MAX_JSON_BYTES, parse_json, read_bytes, write_bytes
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.pretrain.pack_files import (
    FORMAT,
    HEADER,
    ID_FILTERS,
    REMEDY,
    SPLITS,
    Ids,
    PackHeader,
    read_compressed,
    to_bytes,
    to_symbols,
    write_compressed,
)

BEGIN, END = 0, 1
"""Ids of the sentence marks."""


@dataclass(frozen=True)
class EncodedText:
    """The shards of one split, one after the other, as word ids.

    Attributes:
        ids: int32 ``[n]``; each sentence ends with :data:`END`.
        ends: int64 ``[m]``, the places of these ends (a text may have the mark as a word).
        shards: int64 ``[k + 1]``, the number of the first sentence of each shard, and m.
    """

    ids: Ids
    ends: NDArray[np.int64]
    shards: NDArray[np.int64]

    @property
    def n_shards(self) -> int:
        return len(self.shards) - 1

    def sentences(self, order: Sequence[int]) -> zip[tuple[int, int]]:
        """The first place and the number of words of each sentence, shard after shard in the given order."""
        numbers = np.asarray(order, dtype=np.int64)
        first, sizes = self.shards[numbers], self.shards[numbers + 1] - self.shards[numbers]
        picked = np.arange(sizes.sum()) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
        starts = np.concatenate([[0], self.ends[:-1] + 1])[picked]
        return zip(starts.tolist(), (self.ends[picked] - starts).tolist(), strict=True)


@dataclass(frozen=True)
class Pack:
    """A text as word ids, which takes 4 bytes a token.

    Attributes:
        words: the distinct words; 0 and 1 are the sentence marks.
        splits: the text by split.
        digest: of the whole pack; empty if it is in memory only.
    """

    words: list[str]
    splits: dict[str, EncodedText]
    digest: str = ""

    def n_positions(self, split: str) -> int:
        """Tokens and sentence ends of a split."""
        return len(self.splits[split].ids)

    def counts(self) -> Counter[str]:
        """How often each word is in the training text."""
        train = self.splits["train"]
        counts = np.bincount(train.ids, minlength=len(self.words))
        counts[END] -= len(train.ends)
        return Counter(dict(zip(self.words, counts.tolist(), strict=True)))

    def targets(self, vocabulary: LmVocabulary) -> Ids:
        """The softmax's id of each of the pack's words."""
        return np.array([vocabulary[word] for word in self.words], dtype=np.int32)


Shards = Iterable[Iterable[list[str]]]
"""A text, shard by shard, as token lists."""


def encode(shards: Mapping[str, Shards]) -> Pack:
    """A text as word ids.

    Args:
        shards: of ``train`` and ``heldout``. Training shuffles shards, so that a sentence may be one.
    """
    provisional: dict[str, int] = {BEGIN_SENTENCE: BEGIN, END_SENTENCE: END}
    splits = {split: _encode(shards[split], provisional) for split in SPLITS}
    words, final_ids = _by_frequency(list(provisional), splits["train"].ids)
    for text in splits.values():
        text.ids[:] = final_ids[text.ids]
        text.ids[text.ends] = END
    return Pack(words, splits)


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
    pack = encode({split: map(read_sentences, paths[split]) for split in SPLITS})
    for split in SPLITS:
        if not pack.n_positions(split):
            raise UserError(f"there is no sentence in the {split} text ({', '.join(map(str, paths[split]))})")
    files = {"words.xz": write_compressed(folder / "words.xz", "\n".join(pack.words).encode())}
    names: dict[str, list[list[str]]] = {split: [] for split in SPLITS}
    for split, text in pack.splits.items():
        symbols = text.ids.astype(np.int64) + 1
        symbols[text.ends] = 0
        bounds = np.concatenate([[0], text.ends + 1])[text.shards]
        for number, shard in enumerate(np.split(symbols, bounds[1:-1])):
            names[split].append([])
            for part, start in enumerate(range(0, len(shard), tokens_a_file)):
                name = f"{split}-{number:02}-{part:02}.xz"
                files[name] = write_compressed(
                    folder / name, to_bytes(shard[start : start + tokens_a_file]), ID_FILTERS
                )
                names[split][-1].append(name)
    header = {"format": FORMAT, "words": len(pack.words), "shards": names, "files": files}
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
    splits = {split: _read_split(folder, header, split, len(words)) for split in SPLITS}
    return Pack(words, splits, hashlib.sha256(raw).hexdigest()[:16])


def _read_split(folder: Path, header: PackHeader, split: str, n_words: int) -> EncodedText:
    shards = [np.empty(0, dtype=np.int32)]
    sizes = [0]  # sentences of each shard, after a 0
    for names in header.shards[split]:
        parts = [to_symbols(read_compressed(folder, name, header.files), folder / name, n_words) for name in names]
        if parts and parts[-1][-1:].tolist() != [0]:
            raise UserError(f"{folder / names[-1]}: truncated: its last sentence has no end")
        shards += parts
        sizes.append(sum(int((part == 0).sum()) for part in parts))
    symbols = np.concatenate(shards)
    if not len(symbols):
        raise UserError(f"{folder / HEADER}: a pack without {split} text")
    ends = np.flatnonzero(symbols == 0)
    symbols -= 1
    symbols[ends] = END
    return EncodedText(symbols, ends, np.cumsum(sizes))


def _encode(shards: Shards, ids: dict[str, int]) -> EncodedText:
    """Ids by first appearance."""
    out, ends, firsts = array("i"), array("q"), array("q", [0])
    for shard in shards:
        for sentence in shard:
            out.extend([ids.setdefault(word, len(ids)) for word in sentence])
            ends.append(len(out))
            out.append(END)
        firsts.append(len(ends))
    return EncodedText(*(np.array(part, dtype=part.typecode) for part in (out, ends, firsts)))


def _by_frequency(words: list[str], train: Ids) -> tuple[list[str], Ids]:
    """The words in their final order, and the final id of each provisional one."""
    frequencies = np.bincount(train, minlength=len(words)).tolist()
    order = [BEGIN, END, *sorted(range(2, len(words)), key=lambda k: (-frequencies[k], words[k]))]
    final = np.empty(len(words), dtype=np.int32)
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
