"""Named entity recognition: CoNLL-2003 and other column files, or the hub's copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text
from elmo_tasks.data.columns import ColumnSentence, read_column_sentences
from elmo_tasks.data.fields import state_lists
from elmo_tasks.data.layout import LAYOUT_KEYS, Separator, make_layout
from elmo_tasks.data.reader import Reader
from elmo_tasks.data.tags import Span, bioes, bioes_tags, find_spans, has_type, iob2, split_tag, typed
from elmo_tasks.data.text import check_tokens
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.values import Column


@dataclass
class NerItem:
    """A sentence and its entities."""

    tokens: list[str]
    spans: list[Span]


@dataclass
class NerBatch(OnDevice):
    """B sentences and their tags.

    Attributes:
        text: the sentences.
        tags: long ``[B, T]``, BIOES tags, 0 (O) on padding.
        gold: IOB2 tags of each sentence.
    """

    text: Text
    tags: Tensor
    gold: list[list[str]]


class NerReader(Reader[NerItem]):
    """Reads the first column as the token and the last one as the tag, in IOB1, IOB2, BIOES, BIOUL, BMES or BMEWO.

    An entity whose tags have no type (``B``, ``I``) is of the type :data:`NO_TYPE`.

    Args:
        token_column: of a file of columns, the token's, from 1, or from -1, the last one, backwards; None is the first
            one, which must not be the number of the token.
        tag_column: likewise the tag's; None is the last one.
        comment: how comments begin, or several such texts. A line that begins so and ends in a tag, as that of a token
            would, is a token's.
        separator: ``tab`` if tabs alone separate columns, so that a token may hold spaces.
        encoding: of the files.
    """

    fields: ClassVar[Mapping[str, str]] = {"tokens": "a sentence"}
    changeable: ClassVar[Mapping[str, Any]] = {**Reader.changeable, **LAYOUT_KEYS}

    def __init__(
        self,
        *,
        token_column: Column | None = None,
        tag_column: Column | None = None,
        comment: str | Sequence[str] | None = None,
        separator: Separator | None = None,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(encoding=encoding)
        self.layout = make_layout(token_column, tag_column, -1, comment, separator, _is_tag)

    def read_file(self, path: Path, split: str) -> list[NerItem]:
        """All sentences of a column file (see :mod:`elmo_tasks.data.columns`)."""
        sentences = read_column_sentences(path, min_columns=2, encoding=self.encoding, layout=self.layout)
        first: dict[bool, str] = {}
        items: list[NerItem] = []
        for sentence in sentences:
            hint = "" if items else self._hint(sentence)
            item = _item(sentence.tokens, sentence.tags, sentence.where, first, hint)
            items.append(self._at(sentence.where(), item))
        _check_entities(items, split, str(path))
        return items

    def _hint(self, sentence: ColumnSentence) -> str:
        """What may help if a file's first sentence has unknown tags: all of them, or that of a header alone."""
        if not _is_tag(sentence.tags[-1]):
            return "; task.reader.tag_column=N takes the tag from another column"
        return f'; "task.reader.comment={[*self.layout.comments, sentence.tokens[0]]}" leaves out a header'

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[NerItem]:
        """Hub rows with ``tokens`` and ``ner_tags`` (names, or numbers in CoNLL-2003's usual order)."""
        items = []
        first: dict[bool, str] = {}
        for number, row in enumerate(rows):
            place = f"{where} row {number}"
            try:
                tokens, numbers = list(row["tokens"]), list(row["ner_tags"])
            except (KeyError, TypeError) as error:
                raise UserError(f"{place}: expected the columns tokens and ner_tags ({error!r})") from error
            if isinstance(row["tokens"], str) or not all(isinstance(token, str) for token in tokens):
                raise UserError(f"{place}: tokens must be a list of texts, found {quoted(row['tokens'])}")
            tags = [_tag_name(tag, place) for tag in numbers]
            if len(tokens) != len(tags):
                raise UserError(f"{place}: {len(tokens)} tokens but {len(tags)} tags")
            check_tokens(tokens, place)
            items.append(self._at(place, _item(tokens, tags, partial("{} token {}".format, place), first)))
        _check_entities(items, split, where)
        return items

    def texts(self, item: NerItem) -> list[list[str]]:
        return [item.tokens]

    def fit(self, train: Sequence[NerItem]) -> None:
        """Learn the entity types, which are tagged as BIOES."""
        self._use_types({kind for item in train for _, _, kind in item.spans})

    def check(self, items: Sequence[NerItem], split: str) -> None:
        """Count entities whose type training lacks: the model can't find them, and the metric counts them as missed.

        Raises:
            UserError: if that holds for all entities.
        """
        found = Counter(kind for item in items for _, _, kind in item.spans)
        unknown = sorted(found.keys() - set(self.types))
        if unknown and len(unknown) == len(found):
            found_types, known = (shortened(", ".join(types), 100) for types in (unknown, self.types))
            raise UserError(f"the {split} data has no entity type of the training set, {known}; it has {found_types}")
        self._count(f"{split} entities of a type that training lacks", sum(found[kind] for kind in unknown))

    def state(self) -> dict[str, Any]:
        return {"types": self.types}

    def restore(self, state: Mapping[str, Any]) -> None:
        (types,) = state_lists(state, ["types"])
        self._use_types(set(types))

    def _use_types(self, types: set[str]) -> None:
        self.types = sorted(types)
        self.tags = bioes_tags(self.types)
        self._ids = {tag: k for k, tag in enumerate(self.tags)}

    def model_parts(self) -> dict[str, Any]:
        """The BIOES tags."""
        return {"tags": self.tags}

    def collate(self, items: list[NerItem], texts: list[Text]) -> NerBatch:
        """Pad the tags of some sentences; an entity of a type that training lacks is O."""
        (text,) = texts
        tags = torch.zeros(text.mask.shape, dtype=torch.long)
        for row, item in zip(tags, items, strict=True):
            row[: len(item.tokens)] = torch.tensor([self._ids.get(t, 0) for t in bioes(item.spans, len(item.tokens))])
        return NerBatch(text, tags, [iob2(item.spans, len(item.tokens)) for item in items])

    def from_json(self, fields: Mapping[str, Any], where: str) -> NerItem:
        self._check_fields(fields, where)
        return NerItem(self._sentence(fields["tokens"], f"{where}: tokens"), [])

    def to_json(self, item: NerItem, prediction: list[str]) -> dict[str, Any]:
        """The tokens with their IOB2 tags, and the entities."""
        entities = [
            {"text": " ".join(item.tokens[start:stop]), "type": kind, "start": start, "stop": stop}
            for start, stop, kind in find_spans(prediction)
        ]
        return {"tokens": item.tokens, "tags": prediction, "entities": entities}


def _item(
    tokens: list[str], tags: list[str], where: Callable[[int], str], first: dict[bool, str], hint: str = ""
) -> NerItem:
    """A sentence with its tags checked.

    Args:
        tokens: of the sentence.
        tags: of its tokens.
        where: the place of a token, for messages.
        first: the first place of a tag with a type (True) and without one (False) in the file so far.
        hint: on what may be wrong with an unknown tag.
    """
    for k, tag in enumerate(tags):
        if not _is_tag(tag):
            expected = "expected O, or B-, I-, E-, S- and an entity type"
            raise UserError(f"{where(k)}: unknown tag {quoted(tag)}; {expected}{hint}")
        if tag != "O" and first.setdefault(has_type(tag), where(k)) and len(first) > 1:
            other = "without a type" if has_type(tag) else "with a type"
            raise UserError(
                f"{where(k)}: tag {quoted(tag)}, but one {other} at {first[not has_type(tag)]}; expected one kind"
            )
    return NerItem(tokens, find_spans([typed(tag) for tag in tags]))


def _is_tag(tag: str) -> bool:
    """Whether a tag is one of the schemes'; two in one (``B-PER|B-LOC``) are none."""
    parts = split_tag(typed(tag))
    return parts is not None and not any(split_tag(typed(other)) for other in parts[1].split("|")[1:])


def _check_entities(items: Sequence[NerItem], split: str, where: str) -> None:
    """Check that there is something to learn."""
    if split == "train" and items and not any(item.spans for item in items):
        raise UserError(f"{where}: no entity in the training set, every tag is O; expected at least one such as B-PER")


_CONLL_2003 = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")


def _tag_name(tag: Any, where: str) -> str:
    """The name of a tag of the hub.

    Raises:
        UserError: if it is neither a name nor a number of CoNLL-2003.
    """
    if isinstance(tag, str):
        return tag
    if type(tag) is not int or not 0 <= tag < len(_CONLL_2003):
        expected = f"names such as B-PER, or CoNLL-2003's numbers, 0 to {len(_CONLL_2003) - 1}"
        raise UserError(f"{where}: ner_tags: {quoted(tag)} has no name; expected {expected}")
    return _CONLL_2003[tag]
