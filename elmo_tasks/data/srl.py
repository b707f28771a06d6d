"""Semantic role labelling: predicates and their arguments from CoNLL-2012 files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text
from elmo_tasks.data.conll2012 import FIRST_ARGUMENTS, FRAMESET, LEMMA, WORD, Sentence, read_documents
from elmo_tasks.data.tags import iob2
from elmo_tasks.errors import UserError

_LABEL = re.compile(r"(?:[CR]-)?ARG[0-5AM](?:-[A-Z]+)*|(?:C-)?V")
"""PropBank's: ARG0 to ARG5, ARGA, ARGM, with suffixes or without (ARGM-TMP, ARG1-DSP); C- goes on, R- refers back."""


class Gold(TypedDict):
    """What predictions are compared with; ``number`` is the sentence's place in the file, the rest is by predicate."""

    number: int
    predicates: list[int]
    lemmas: list[str]
    tags: list[list[str]]


@dataclass
class SrlItem:
    """A sentence and, for each of its predicates, the predicate's token and the IOB2 tags of all tokens."""

    tokens: list[str]
    gold: Gold


@dataclass
class SrlBatch(OnDevice):
    """S sentences with N predicates in all, P in the sentence that has most.

    Attributes:
        text: the sentences, each once.
        real: bool ``[S, P]``, True where a sentence has that many predicates; N are True.
        predicates: long ``[N]``, the token of each predicate, sentence by sentence.
        tags: long ``[N, T]``, 0 on padding.
        gold: what the metric compares with, by sentence.
    """

    text: Text
    real: Tensor
    predicates: Tensor
    tags: Tensor
    gold: list[Gold]


class SrlReader:
    """Reads sentences with all of their predicates, so that words and layers of a sentence are there once.

    A predicate is a token with a frameset. ``left_out`` counts for each split sentences without predicates, training
    sentences that are too long, and arguments whose label no training sentence has (they stay in the gold and count as
    missed).

    Args:
        max_training_tokens: training sentences with more are left out (100 in He et al., 2017).
    """

    def __init__(self, *, max_training_tokens: int) -> None:
        if not isinstance(max_training_tokens, int) or max_training_tokens < 1:
            raise UserError(
                f"task.reader.max_training_tokens must be a whole number of at least 1, found {max_training_tokens!r}"
            )
        self.max_training_tokens = max_training_tokens
        self.left_out: dict[str, int] = {}
        self.labels: set[str] = set()

    def read_file(self, path: Path, split: str) -> list[SrlItem]:
        """All sentences with predicates of a file, or of a folder of ``*_conll`` files.

        Raises:
            UserError: naming file and line for bad annotation, and the file if there is no such sentence in it.
        """
        items: list[SrlItem] = []
        n_read = 0
        for sentence in (sentence for document in read_documents(path) for sentence in document.sentences):
            gold = self._gold(sentence, n_read, split)
            n_read += 1
            if not gold["predicates"]:
                self._count(f"{split} sentences without predicates")
            elif split == "train" and len(sentence.rows) > self.max_training_tokens:
                self._count(f"{split} sentences that are too long")
            else:
                items.append(SrlItem(sentence.tokens, gold))
        if not items:
            short = f" of at most {self.max_training_tokens} tokens" if split == "train" else ""
            raise UserError(f"{path}: no {split} sentence{short} has a predicate; {_n(n_read, 'sentence')} read")
        return items

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[SrlItem]:
        """There is no copy on the hub (``hub: null`` in the task's configuration)."""
        raise NotImplementedError

    def _gold(self, sentence: Sentence, number: int, split: str) -> Gold:
        at = [k for k, frameset in enumerate(sentence.column(FRAMESET)) if frameset != "-"]
        n_columns = len(sentence.rows[0]) - FIRST_ARGUMENTS - 1
        if n_columns != len(at):
            raise UserError(
                f"{sentence.where()}: {_n(len(at), 'predicate')} but {_n(n_columns, 'column')} of arguments"
            )
        lemmas = [_name(sentence.rows[k]) for k in at]
        tags = [self._tags(sentence, FIRST_ARGUMENTS + n, k, split) for n, k in enumerate(at)]
        return Gold(number=number, predicates=at, lemmas=lemmas, tags=tags)

    def _tags(self, sentence: Sentence, column: int, predicate: int, split: str) -> list[str]:
        spans = sentence.spans(column)
        of_predicate = f"in column {column + 1}, which is that of the predicate {sentence.tokens[predicate]!r}"
        verbs = [(start, stop) for start, stop, label in spans if label == "V"]
        if not any(start <= predicate < stop for start, stop in verbs):
            raise UserError(f"{sentence.where(predicate)}: no V {of_predicate}")
        if len(verbs) > 1:
            raise UserError(f"{sentence.where(verbs[1][0])}: a second V {of_predicate}; expected C-V for what goes on")
        for start, _, label in spans:
            if not _LABEL.fullmatch(label):
                raise UserError(
                    f"{sentence.where(start)}: unknown label {label!r}; expected one of PropBank's, such as ARG0, "
                    "ARGM-TMP, R-ARG0 or C-V"
                )
            if split == "train":
                self.labels.add(label)
            elif label not in self.labels:
                self._count(f"{split} arguments with a label that training lacks")
        return iob2(spans, len(sentence.rows))

    def _count(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def texts(self, item: SrlItem) -> list[list[str]]:
        return [item.tokens]

    def model_parts(self, train: list[SrlItem]) -> dict[str, Any]:
        """The IOB2 tags over the labels of the whole training file, O first."""
        self.tags = ["O", *(f"{prefix}-{label}" for label in sorted(self.labels) for prefix in "BI")]
        self._ids = {tag: k for k, tag in enumerate(self.tags)}
        return {"tags": self.tags}

    def collate(self, items: list[SrlItem], texts: list[Text]) -> SrlBatch:
        """Predicates and tags of some sentences."""
        (text,) = texts
        counts = torch.tensor([len(item.gold["predicates"]) for item in items])
        of_predicates = [tags for item in items for tags in item.gold["tags"]]
        padded = torch.zeros(len(of_predicates), text.mask.shape[1], dtype=torch.long)
        for row, tags in zip(padded, of_predicates, strict=True):
            row[: len(tags)] = torch.tensor([self._ids.get(tag, 0) for tag in tags])
        return SrlBatch(
            text=text,
            real=torch.arange(int(counts.max())) < counts.unsqueeze(1),
            predicates=torch.tensor([k for item in items for k in item.gold["predicates"]]),
            tags=padded,
            gold=[item.gold for item in items],
        )


def _n(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _name(row: list[str]) -> str:
    """What the scorer is told of a predicate: its lemma, or its word where it has none.

    In its files a ``-`` says that no predicate is here, and white space ends a column.
    """
    names = (name for name in (row[LEMMA], row[WORD]) if name != "-" and not re.search(r"\s", name))
    return next(names, "_")
