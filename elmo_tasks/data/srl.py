"""Semantic role labelling: predicates and their arguments from CoNLL-2012 files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text, mask_of
from elmo_tasks.data.conll2012 import conll_files, read_documents, unescape_ontonotes
from elmo_tasks.data.fields import state_lists
from elmo_tasks.data.frames import SrlGold, read_frames
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.tags import find_spans
from elmo_tasks.errors import UserError, counted, quoted
from elmo_tasks.values import Size


@dataclass
class SrlItem:
    """A sentence and, for each of its predicates, the predicate's token and the IOB2 tags of all tokens."""

    tokens: list[str]
    gold: SrlGold


@dataclass
class SrlBatch(OnDevice):
    """B sentences with N predicates in all, N_p in the sentence that has most.

    Attributes:
        text: the sentences, each once.
        valid: bool ``[B, N_p]``, True where a sentence has that many predicates; N are True.
        predicates: long ``[N]``, the token of each predicate, sentence by sentence.
        tags: long ``[N, T]``, 0 on padding.
        gold: what the metric compares with, by sentence.
    """

    text: Text
    valid: Tensor
    predicates: Tensor
    tags: Tensor
    gold: list[SrlGold]


class SrlReader(Reader[SrlItem]):
    """Reads sentences with all of their predicates, so that the words and layers of a sentence are stored once.

    A predicate is a token with a frameset. ``left_out`` counts for each split sentences without predicates, training
    sentences that are too long, arguments within another one, and arguments whose label no training sentence has (they
    stay in the gold and count as missed).

    Args:
        max_training_tokens: training sentences with more are left out (100 in He et al., 2017).
        nested_labels: ``drop`` leaves out an argument within another one, and one around the V, instead of refusing it:
            a token has one label.
        encoding: of the files.
    """

    fields: ClassVar[Mapping[str, str]] = {
        "tokens": "a sentence",
        "predicates": "optional: the positions of its predicates, from 0",
    }

    def __init__(
        self, *, max_training_tokens: Size, nested_labels: Literal["drop"] | None = None, encoding: str = "utf-8"
    ) -> None:
        super().__init__(encoding=encoding)
        self.max_training_tokens, self.nested_labels = max_training_tokens, nested_labels

    def list_files(self, folder: Path) -> list[Path]:
        """The ``*_conll`` or ``*.conll`` files below it (see :func:`conll_files`)."""
        return conll_files(folder)

    def read_file(self, path: Path, split: str) -> list[SrlItem]:
        """All sentences with predicates of a file, or of a folder of such files.

        Raises:
            UserError: naming file and line for bad annotation, and the file if there is no such sentence in it.
        """
        items: list[SrlItem] = []
        sentences = [s for document in read_documents(path, self.encoding) for s in document.sentences]
        inner: list[str] | None = [] if self.nested_labels else None
        for number, sentence in enumerate(sentences):
            gold = read_frames(sentence, number, inner)
            if not gold["predicates"]:
                self._count(f"{split} sentences without predicates")
            elif split == "train" and len(sentence.rows) > self.max_training_tokens:
                self._count(f"{split} sentences that are too long")
            else:
                items.append(self._at(sentence.where(), SrlItem(sentence.tokens, gold)))
        self._count(f"{split} arguments within another", len(inner or []))
        if not items:
            short = f" of at most {self.max_training_tokens} tokens" if split == "train" else ""
            n_read = counted(len(sentences), "sentence")
            raise UserError(f"{path}: no {split} sentence{short} has a predicate; {n_read} read")
        if split == "train" and _labels(items) <= {"V"}:  # the predicates' own
            raise UserError(
                f"{path}: no predicate in the training set has an argument; expected at least one such as (ARG0*)"
            )
        return items

    def token(self, text: str) -> str:
        return unescape_ontonotes(text)

    def texts(self, item: SrlItem) -> list[list[str]]:
        return [item.tokens]

    def n_rows(self, item: SrlItem) -> int:
        return len(item.gold["predicates"])

    def fit(self, train: Sequence[SrlItem]) -> None:
        """Learn the labels, and the words that are predicates more often than not."""
        labels = _labels(train)
        words = Counter(word.lower() for item in train for word in item.tokens)
        predicates = Counter(item.tokens[k].lower() for item in train for k in item.gold["predicates"])
        self._use(labels, {word for word, n in predicates.items() if 2 * n > words[word]})

    def check(self, items: Sequence[SrlItem], split: str) -> None:
        """Count arguments whose label training lacks."""
        spans = (span for item in items for tags in item.gold["tags"] for span in find_spans(tags))
        unknown = sum(label not in self.labels for _, _, label in spans)
        self._count(f"{split} arguments with a label that training lacks", unknown)

    def state(self) -> dict[str, Any]:
        return {"labels": sorted(self.labels), "verbs": sorted(self.verbs)}

    def restore(self, state: Mapping[str, Any]) -> None:
        labels, verbs = state_lists(state, ["labels", "verbs"])
        self._use(set(labels), set(verbs))

    def _use(self, labels: set[str], verbs: set[str]) -> None:
        self.labels, self.verbs = labels, verbs
        self.tags = ["O", *(f"{prefix}-{label}" for label in sorted(labels) for prefix in "BI")]
        self._ids = {tag: k for k, tag in enumerate(self.tags)}

    def model_parts(self) -> dict[str, Any]:
        """The IOB2 tags over the labels, O first."""
        return {"tags": self.tags}

    def collate(self, items: list[SrlItem], texts: list[Text]) -> SrlBatch:
        """Predicates and tags of some sentences."""
        (text,) = texts
        counts = torch.tensor([len(item.gold["predicates"]) for item in items])
        tags_by_predicate = [tags for item in items for tags in item.gold["tags"]]
        padded = torch.zeros(len(tags_by_predicate), text.mask.shape[1], dtype=torch.long)
        for row, tags in zip(padded, tags_by_predicate, strict=True):
            row[: len(tags)] = torch.tensor([self._ids.get(tag, 0) for tag in tags])
        return SrlBatch(
            text=text,
            valid=mask_of(counts, int(counts.max())),
            predicates=torch.tensor([k for item in items for k in item.gold["predicates"]], dtype=torch.long),
            tags=padded,
            gold=[item.gold for item in items],
        )

    def from_json(self, fields: Mapping[str, Any], where: str) -> SrlItem:
        """A sentence; without ``predicates`` they are the words that are predicates more often than not in training.

        A sentence may have none, such as a heading: its prediction has no frame.
        """
        self._check_fields(fields, where, optional=["predicates"])
        tokens = self._sentence(fields["tokens"], f"{where}: tokens")
        found = [k for k, word in enumerate(tokens) if word.lower() in self.verbs]
        predicates = fields.get("predicates", found)
        if not isinstance(predicates, list) or not all(type(k) is int and 0 <= k < len(tokens) for k in predicates):
            expected = f"a list of whole numbers from 0 to {len(tokens) - 1}"
            raise UserError(f"{where}: predicates must be {expected}, found {quoted(predicates)}")
        predicates = sorted(set(predicates))
        nothing = [["O"] * len(tokens) for _ in predicates]
        return SrlItem(tokens, SrlGold(number=0, predicates=predicates, lemmas=["_"] * len(predicates), tags=nothing))

    def to_json(self, item: SrlItem, prediction: list[list[str]]) -> dict[str, Any]:
        """The arguments of each predicate."""
        frames = [
            {
                "predicate": item.tokens[k],
                "place": k,
                "tags": tags,
                "arguments": [
                    {"label": label, "text": " ".join(item.tokens[start:stop]), "start": start, "stop": stop}
                    for start, stop, label in find_spans(tags)
                ],
            }
            for k, tags in zip(item.gold["predicates"], prediction, strict=True)
        ]
        return {"tokens": item.tokens, "frames": frames}


def _labels(items: Sequence[SrlItem]) -> set[str]:
    """All labels of arguments, and V, the label of the predicates themselves."""
    return {label for item in items for tags in item.gold["tags"] for _, _, label in find_spans(tags)}
