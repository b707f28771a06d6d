"""Part-of-speech tagging: the Penn Treebank's trees, or a file of columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.batch import IGNORE_INDEX, OnDevice, Text
from elmo_tasks.data.columns import read_column_sentences
from elmo_tasks.data.fields import state_lists
from elmo_tasks.data.files import files_below
from elmo_tasks.data.layout import LAYOUT_KEYS, Separator, make_layout
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.text import check_tokens, unescape_treebank
from elmo_tasks.data.treebank import NULL_ELEMENT, are_trees, read_tagged_trees
from elmo_tasks.errors import UserError
from elmo_tasks.values import Column, Size

_SECTIONS = {"train": range(0, 19), "dev": range(19, 22), "test": range(22, 25)}
_SENTIMENTS = set("01234")
_TENTHS = {"train": range(0, 8), "dev": range(8, 9), "test": range(9, 10)}


@dataclass
class PosItem:
    """A sentence and the tag of each of its words."""

    tokens: list[str]
    tags: list[str]


@dataclass
class PosBatch(OnDevice):
    """B sentences and their tags.

    Attributes:
        text: the sentences.
        tags: long ``[B, T]``, :data:`IGNORE_INDEX` on padding and for a tag that training does not have.
        gold: the tags of each sentence.
    """

    text: Text
    tags: Tensor
    gold: list[list[str]]


class PosReader(Reader[PosItem]):
    """Reads a folder of trees or a file of columns; null elements are left out, the Treebank's escapes undone.

    A folder of ``*.mrg`` files holds all splits. With the Treebank's sections (``wsj_SSNN.mrg``, or folders named by
    two digits) the splits are 0 to 18, 19 to 21 and 22 to 24. A folder without any section beyond 18 has no official
    split: of each ten files in order of their names the ninth is then dev and the tenth test.

    A file is one of trees or of columns, by its beginning (see :func:`are_trees`); each split has its own then.

    Args:
        column: of a file of columns, the one with the tag, from 0.
        token_column: the token's, from 1, or from -1, the last one, backwards; None is the first one, which must not
            be the number of the token.
        tag_column: the tag's, counted likewise, in place of ``column``.
        comment: how comments begin, or several such texts.
        separator: ``tab`` if tabs alone separate columns, so that a token may hold spaces.
        encoding: of the files.
    """

    fields: ClassVar[Mapping[str, str]] = {"tokens": "a sentence"}
    changeable: ClassVar[Mapping[str, Any]] = {**Reader.changeable, **LAYOUT_KEYS, "column": Size}

    def __init__(
        self,
        *,
        column: Size = 1,
        token_column: Column | None = None,
        tag_column: Column | None = None,
        comment: str | Sequence[str] | None = None,
        separator: Separator | None = None,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(encoding=encoding)
        self.layout = make_layout(token_column, tag_column, column + 1, comment, separator, is_tag=None)

    def read_file(self, path: Path, split: str) -> list[PosItem]:
        """All sentences of a split."""
        if path.is_dir():
            return [item for file in find_trees(path, split) for item in self._read_trees(file)]
        if are_trees(path, self.encoding):
            return list(self._read_trees(path))
        sentences = read_column_sentences(path, min_columns=1, encoding=self.encoding, layout=self.layout)
        return [
            self._at(sentence.where(), PosItem(list(map(self.token, sentence.tokens)), sentence.tags))
            for sentence in sentences
        ]

    def list_files(self, folder: Path) -> list[Path]:
        """All ``*.mrg`` files, those of every split."""
        return list_trees(folder)

    def division(self, folder: Path) -> str:
        """The sections of the files, if they decide; else their order does."""
        sections = [_section(file) for file in list_trees(folder)]
        return ",".join(map(str, sections)) if _are_official(sections) else ""

    def _read_trees(self, path: Path) -> Iterator[PosItem]:
        for where, leaves in read_tagged_trees(path, self.encoding):
            if {tag for _, tag in leaves} <= _SENTIMENTS:
                raise UserError(
                    f"{where}: labels 0 to 4, as in the Sentiment Treebank (task=sst5); expected parts of speech"
                )
            words = [(self.token(word), tag) for word, tag in leaves if tag != NULL_ELEMENT]
            self._count("null elements", len(leaves) - len(words))
            if words:
                item = PosItem([word for word, _ in words], [tag for _, tag in words])
                check_tokens(item.tokens, where)
                yield self._at(where, item)

    def token(self, text: str) -> str:
        return unescape_treebank(text)

    def texts(self, item: PosItem) -> list[list[str]]:
        return [item.tokens]

    def fit(self, train: Sequence[PosItem]) -> None:
        """Learn the tags."""
        self._use_tags({tag for item in train for tag in item.tags})

    def check(self, items: Sequence[PosItem], split: str) -> None:
        """Count tokens whose tag training lacks: the metric counts them as wrong."""
        unknown = sum(tag not in self._ids for item in items for tag in item.tags)
        self._count(f"{split} tokens with a tag that training lacks", unknown)

    def state(self) -> dict[str, Any]:
        return {"tags": self.tags}

    def restore(self, state: Mapping[str, Any]) -> None:
        (tags,) = state_lists(state, ["tags"])
        self._use_tags(set(tags))

    def _use_tags(self, tags: set[str]) -> None:
        self.tags = sorted(tags)
        self._ids = {tag: k for k, tag in enumerate(self.tags)}

    def model_parts(self) -> dict[str, Any]:
        """The tags."""
        return {"tags": self.tags}

    def collate(self, items: list[PosItem], texts: list[Text]) -> PosBatch:
        """Pad the tags of some sentences."""
        (text,) = texts
        tags = torch.full(text.mask.shape, IGNORE_INDEX)
        for row, item in zip(tags, items, strict=True):
            row[: len(item.tags)] = torch.tensor([self._ids.get(tag, IGNORE_INDEX) for tag in item.tags])
        return PosBatch(text, tags, [item.tags for item in items])

    def from_json(self, fields: Mapping[str, Any], where: str) -> PosItem:
        self._check_fields(fields, where)
        return PosItem(self._sentence(fields["tokens"], f"{where}: tokens"), [])

    def to_json(self, item: PosItem, prediction: list[str]) -> dict[str, Any]:
        """The tokens with their tags."""
        return {"tokens": item.tokens, "tags": prediction}


def find_trees(folder: Path, split: str) -> list[Path]:
    """The files of a split, by section or, where there is no official split, by place in the order of names.

    Raises:
        UserError: if the folder has no trees.
    """
    files = list_trees(folder)
    sections = [_section(file) for file in files]
    if _are_official(sections):
        return [file for file, section in zip(files, sections, strict=True) if section in _SECTIONS[split]]
    return [file for k, file in enumerate(files) if k % 10 in _TENTHS[split]]


def list_trees(folder: Path) -> list[Path]:
    """All ``*.mrg`` files below a folder, in order of their names.

    Raises:
        UserError: if there are none.
    """
    files = [file for file in files_below(folder) if file.suffix == ".mrg"]
    if not files:
        raise UserError(f"{folder}: no *.mrg file in it; expected the Treebank's merged trees")
    return files


def _are_official(sections: Sequence[int | None]) -> bool:
    """Whether the files are those of the whole Treebank, so that its official sections are the splits."""
    return any(section is not None and section > 18 for section in sections)


def _section(file: Path) -> int | None:
    """The section by the file's folder (``wsj/19/``) or name (``wsj_1901.mrg``); None if neither has one."""
    found = re.fullmatch(r"(\d\d)", file.parent.name) or re.fullmatch(r"wsj_(\d\d)\d\d", file.stem)
    return int(found[1]) if found else None
