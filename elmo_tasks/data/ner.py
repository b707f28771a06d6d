"""Named entity recognition: CoNLL-2003 and other column files, or the hub's copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text
from elmo_tasks.data.columns import read_column_sentences
from elmo_tasks.data.tags import Span, bioes, bioes_tags, iob2, spans_of, split_tag
from elmo_tasks.data.text import check_tokens
from elmo_tasks.errors import UserError


@dataclass
class NerItem:
    """A sentence and its entities."""

    tokens: list[str]
    spans: list[Span]


@dataclass
class NerBatch(OnDevice):
    """Attributes:
    text: the sentences.
    tags: long ``[B, T]``, BIOES tags, 0 (O) on padding.
    gold: IOB2 tags of each sentence.
    """

    text: Text
    tags: Tensor
    gold: list[list[str]]


class NerReader:
    """Reads the first column as the token and the last one as the tag, in IOB1, IOB2 or BIOES (BIOUL)."""

    def __init__(self) -> None:
        self.left_out: dict[str, int] = {}
        self.kinds: set[str] = set()

    def read_file(self, path: Path, split: str) -> list[NerItem]:
        """All sentences of a column file (see :mod:`elmo_tasks.data.columns`)."""
        return [
            self._item(sentence.tokens, [row[-1] for row in sentence.rows], split, sentence.where)
            for sentence in read_column_sentences(path, min_columns=2)
        ]

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[NerItem]:
        """Hub rows with ``tokens`` and ``ner_tags`` (names, or numbers in CoNLL-2003's usual order)."""
        items = []
        for number, row in enumerate(rows):
            place = f"{where} row {number}"
            try:
                tokens, tags = list(row["tokens"]), [_tag_name(tag) for tag in row["ner_tags"]]
            except (KeyError, TypeError) as error:
                raise UserError(f"{place}: expected the columns tokens and ner_tags ({error!r})") from error
            if len(tokens) != len(tags):
                raise UserError(f"{place}: {len(tokens)} tokens but {len(tags)} tags")
            check_tokens(tokens, place)
            items.append(self._item(tokens, tags, split, lambda k, place=place: f"{place} token {k}"))
        return items

    def _item(self, tokens: list[str], tags: list[str], split: str, where: Any) -> NerItem:
        for k, tag in enumerate(tags):
            parts = split_tag(tag)
            if parts is None:
                raise UserError(f"{where(k)}: unknown tag {tag!r}; expected O, or B-, I-, E-, S- and an entity type")
            if split == "train" and parts[1]:
                self.kinds.add(parts[1])
            elif parts[1] and parts[1] not in self.kinds:
                known = ", ".join(sorted(self.kinds))
                raise UserError(f"{where(k)}: unknown entity type {parts[1]!r}; the training set has {known}")
        return NerItem(tokens, spans_of(tags))

    def texts(self, item: NerItem) -> list[list[str]]:
        return [item.tokens]

    def model_parts(self, train: list[NerItem]) -> dict[str, Any]:
        """The BIOES tags over the entity types of the whole training file."""
        self.tags = bioes_tags(self.kinds)
        self._ids = {tag: k for k, tag in enumerate(self.tags)}
        return {"tags": self.tags}

    def collate(self, items: list[NerItem], texts: list[Text]) -> NerBatch:
        """Pad the tags of some sentences."""
        (text,) = texts
        tags = torch.zeros(text.mask.shape, dtype=torch.long)
        for row, item in zip(tags, items, strict=True):
            row[: len(item.tokens)] = torch.tensor([self._ids[t] for t in bioes(item.spans, len(item.tokens))])
        return NerBatch(text, tags, [iob2(item.spans, len(item.tokens)) for item in items])


_CONLL_2003 = dict(enumerate(("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")))


def _tag_name(tag: Any) -> str:
    return tag if isinstance(tag, str) else _CONLL_2003[tag]
