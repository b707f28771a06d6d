"""Natural language inference: the official jsonl files, or the hub's copy."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.batch import IGNORE_INDEX, OnDevice, Text
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.text import check_tokens, read_lines
from elmo_tasks.errors import UserError, quoted, shortened

LABELS = ("entailment", "neutral", "contradiction")
NO_MAJORITY = "-"


@dataclass
class SnliItem:
    """Two sentences and the number of their label."""

    premise: list[str]
    hypothesis: list[str]
    label: int


@dataclass
class SnliBatch(OnDevice):
    """B pairs of sentences.

    Attributes:
        premise, hypothesis: the sentences.
        labels: long ``[B]``.
        gold: the labels as plain numbers.
    """

    premise: Text
    hypothesis: Text
    labels: Tensor
    gold: list[int]


class SnliReader(Reader[SnliItem]):
    """Reads pairs as raw sentences and tokenises them; pairs whose annotators found no majority are left out.

    The parses in the official files are not read, so that files and hub give the same tokens.
    """

    fields: ClassVar[Mapping[str, str]] = {"premise": "a sentence", "hypothesis": "a sentence"}

    def read_file(self, path: Path, split: str) -> list[SnliItem]:
        """All pairs of a jsonl file, one object per line; empty lines are skipped."""
        items: list[SnliItem] = []
        seen: dict[str, int] = {}
        for number, line in read_lines(path, encoding=self.encoding):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            pair = _object(line, where)
            name = pair.get("pairID")
            if isinstance(name, str) and seen.setdefault(name, number) != number:
                raise UserError(f"{where}: pairID {quoted(name)} is also in line {seen[name]}{_of_one_language(pair)}")
            label = pair["gold_label"]
            if label not in (*LABELS, NO_MAJORITY):
                raise UserError(
                    f"{where}: unknown gold_label {quoted(label)}; expected {', '.join(LABELS)} or {NO_MAJORITY!r}"
                )
            self._add(items, pair["sentence1"], pair["sentence2"], label, where)
        return items

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[SnliItem]:
        """Hub rows with ``premise``, ``hypothesis`` and ``label``, a name or its number (-1 for no majority)."""
        items: list[SnliItem] = []
        for number, row in enumerate(rows):
            place = f"{where} row {number}"
            try:
                premise, hypothesis, label = row["premise"], row["hypothesis"], row["label"]
            except KeyError as error:
                raise UserError(f"{place}: expected the columns premise, hypothesis and label, no {error}") from error
            if isinstance(label, int) and not isinstance(label, bool) and -1 <= label < len(LABELS):
                label = NO_MAJORITY if label == -1 else LABELS[label]
            if label not in (*LABELS, NO_MAJORITY):
                raise UserError(f"{place}: label {quoted(label)} is not in -1 .. {len(LABELS) - 1}")
            self._add(items, premise, hypothesis, label, place)
        return items

    def _add(self, items: list[SnliItem], premise: Any, hypothesis: Any, label: str, where: str) -> None:
        if label == NO_MAJORITY:
            self._count("no majority")
            return
        sentences = []
        for name, sentence in (("premise", premise), ("hypothesis", hypothesis)):
            if not isinstance(sentence, str):
                raise UserError(f"{where}: the {name} must be a text, found {quoted(sentence)}")
            sentences.append(self.tokenize(sentence))
            check_tokens(sentences[-1], f"{where} ({name})")
        items.append(self._at(where, SnliItem(sentences[0], sentences[1], LABELS.index(label))))

    def texts(self, item: SnliItem) -> list[list[str]]:
        return [item.premise, item.hypothesis]

    def group(self, item: SnliItem) -> Hashable:
        """The premise, which several pairs share."""
        return tuple(item.premise)

    def model_parts(self) -> dict[str, Any]:
        """The number of classes."""
        return {"n_labels": len(LABELS)}

    def collate(self, items: list[SnliItem], texts: list[Text]) -> SnliBatch:
        """Labels of some pairs."""
        labels = [item.label for item in items]
        return SnliBatch(texts[0], texts[1], torch.tensor(labels), labels)

    def from_json(self, fields: Mapping[str, Any], where: str) -> SnliItem:
        self._check_fields(fields, where)
        premise, hypothesis = (self._sentence(fields[name], f"{where}: {name}") for name in self.fields)
        return SnliItem(premise, hypothesis, IGNORE_INDEX)

    def to_json(self, item: SnliItem, prediction: int) -> dict[str, Any]:
        """The label by its name."""
        return {"label": LABELS[prediction]}


def _of_one_language(pair: Mapping[str, Any]) -> str:
    """What to do about a pair that is there in several languages, as in XNLI; empty for other pairs."""
    language = pair.get("language")
    if not isinstance(language, str) or not re.fullmatch(r"[a-z]{2,3}", language):
        return ""
    command = f"""grep '"language": *"{language}"' FILE"""
    return f"; a file in several languages, as XNLI's, has it once in each: make one of one language with: {command}"


def _object(line: str, where: str) -> dict[str, Any]:
    """The JSON object on one line of the file."""
    try:
        pair = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not JSON ({error}); expected one object a line") from error
    wanted = {"gold_label", "sentence1", "sentence2"}
    if not isinstance(pair, dict) or not wanted <= set(pair):
        found = shortened(", ".join(sorted(pair)), 100) if isinstance(pair, dict) else type(pair).__name__
        raise UserError(f"{where}: expected an object with {', '.join(sorted(wanted))}, found {found}")
    return pair
