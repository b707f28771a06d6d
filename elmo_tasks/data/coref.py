"""Coreference: documents with clusters of mentions from CoNLL-2012 files."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice, Text
from elmo_tasks.data.clusters import CorefGold, merged, n_crossing, n_repeated, n_written, read_clusters
from elmo_tasks.data.conll2012 import SPEAKER, Document, conll_files, read_documents, unescape_ontonotes
from elmo_tasks.data.fields import state_lists
from elmo_tasks.data.reader import Reader
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.values import Size

N_DOCUMENTS = {"train": 2802, "dev": 343, "test": 348}
"""Of the English part of CoNLL-2012 (OntoNotes 5.0), parts counted."""


@dataclass
class CorefItem:
    """A document: its sentences, the speaker of each token, its genre, and its clusters."""

    sentences: list[list[str]]
    speakers: list[str]
    genre: str
    gold: CorefGold


@dataclass
class CorefBatch(OnDevice):
    """One document of n tokens.

    Attributes:
        text: its sentences, one a row.
        speakers: long ``[n]``, numbers of the speakers.
        genre: long ``[]``, number of the genre, 0 for one that training lacks.
        mentions: long ``[M, 2]``, first and last token of the gold mentions.
        clusters: long ``[M]``, numbers of their clusters.
        gold: what the metric compares with (one document).
    """

    text: Text
    speakers: Tensor
    genre: Tensor
    mentions: Tensor
    clusters: Tensor
    gold: list[CorefGold]


class CorefReader(Reader[CorefItem]):
    """Reads documents (a part is a document of its own) with their speakers and genres.

    The genre is what stands before the first slash of a document's name (``nw/wsj/...``); documents whose names have no
    slash are of one genre, ``""``. ``left_out`` counts for each split: documents without a mention (which are left out
    of training alone); mentions that are written twice in a cluster (which are there once); mentions in two clusters
    (OntoNotes has a few; the metric handles them, and for training such clusters are merged); and mentions that cross
    another (which stay in the gold, although the model, whose spans never cross, cannot find both).

    Args:
        max_training_sentences: longer training documents are cut to this many consecutive sentences, from a random
            place in each epoch.
        ontonotes: whether the number of documents must be that of CoNLL-2012, so that a split other than the official
            one is noticed.
        encoding: of the files.
    """

    documents = True
    fields: ClassVar[Mapping[str, str]] = {
        "sentences": "a list of sentences",
        "genre": "optional: such as nw; those of the training documents are known",
        "speakers": "optional: the speaker of each sentence",
    }

    def __init__(self, *, max_training_sentences: Size, ontonotes: bool = False, encoding: str = "utf-8") -> None:
        super().__init__(encoding=encoding)
        self.max_training_sentences, self.ontonotes = max_training_sentences, ontonotes

    def list_files(self, folder: Path) -> list[Path]:
        """The ``*_conll`` or ``*.conll`` files below it (see :func:`conll_files`)."""
        return conll_files(folder)

    def group(self, item: CorefItem) -> Hashable:
        """The document, which may have several parts."""
        return item.gold["name"]

    def read_file(self, path: Path, split: str) -> list[CorefItem]:
        """All documents of a file, or of a folder of such files; none may be there twice (name and part)."""
        documents = list(_distinct(read_documents(path, self.encoding)))
        items = [
            self._at(f"{document.path}:{document.line}", _item(document, number))
            for number, document in enumerate(documents)
        ]
        if self.ontonotes and len(items) != N_DOCUMENTS[split]:
            raise UserError(
                f"{path}: {len(items):,} documents, but {split} of CoNLL-2012 has {N_DOCUMENTS[split]:,} "
                "(task.reader.ontonotes=false takes any number)"
            )
        gold = [item.gold["clusters"] for item in items]
        self._count(f"{split} documents without a mention", gold.count([]))
        n_different = sum(len(cluster) for clusters in gold for cluster in clusters)
        self._count(f"{split} mentions written twice in a cluster", sum(map(n_written, documents)) - n_different)
        self._count(f"{split} mentions in two clusters", sum(map(n_repeated, gold)))
        self._count(f"{split} mentions that cross another", sum(map(n_crossing, gold)))
        if split != "train":
            return items
        for item in items:
            item.gold["clusters"] = merged(item.gold["clusters"])
        with_mentions = [item for item in items if item.gold["clusters"]]
        if not with_mentions:
            raise UserError(f"{path}: no training document has a mention")
        return with_mentions

    def token(self, text: str) -> str:
        return unescape_ontonotes(text)

    def texts(self, item: CorefItem) -> list[list[str]]:
        return item.sentences

    def fit(self, train: Sequence[CorefItem]) -> None:
        """Learn the genres."""
        self._use_genres({item.genre for item in train})

    def state(self) -> dict[str, Any]:
        return {"genres": list(self._genre_ids)}

    def restore(self, state: Mapping[str, Any]) -> None:
        (genres,) = state_lists(state, ["genres"])
        self.ontonotes = False  # a finished run is scored on any documents
        self._use_genres(set(genres))

    def _use_genres(self, genres: set[str]) -> None:
        self._genre_ids = {genre: k for k, genre in enumerate(sorted(genres), start=1)}

    def vary(self, item: CorefItem, rng: random.Random) -> CorefItem:
        """A random stretch of a training document that is too long."""
        surplus = len(item.sentences) - self.max_training_sentences
        return item if surplus <= 0 else cut(item, rng.randint(0, surplus), self.max_training_sentences)

    def model_parts(self) -> dict[str, Any]:
        """The number of genres, including one for those that training lacks."""
        return {"n_genres": len(self._genre_ids) + 1}

    def collate(self, items: list[CorefItem], texts: list[Text]) -> CorefBatch:
        """One document."""
        (item,), (text,) = items, texts
        numbers = {speaker: k for k, speaker in enumerate(dict.fromkeys(item.speakers))}
        mentions = [(*mention, k) for k, cluster in enumerate(item.gold["clusters"]) for mention in cluster]
        table = torch.tensor(mentions, dtype=torch.long).view(-1, 3)
        return CorefBatch(
            text=text,
            speakers=torch.tensor([numbers[speaker] for speaker in item.speakers]),
            genre=torch.tensor(self._genre_ids.get(item.genre, 0)),
            mentions=table[:, :2] - torch.tensor([0, 1]),
            clusters=table[:, 2],
            gold=[item.gold],
        )

    def from_json(self, fields: Mapping[str, Any], where: str) -> CorefItem:
        """A document; without ``speakers`` it has one, without ``genre`` one that training lacks."""
        self._check_fields(fields, where, optional=["genre", "speakers"])
        sentences = fields["sentences"]
        if not isinstance(sentences, list) or not sentences:
            raise UserError(f"{where}: sentences must be a list of one or more, found {quoted(sentences)}")
        tokens = [self._sentence(sentence, f"{where}: sentence {k}") for k, sentence in enumerate(sentences)]
        speakers = fields.get("speakers", ["-"] * len(tokens))
        if not isinstance(speakers, list) or len(speakers) != len(tokens) or not all(map(_is_text, speakers)):
            raise UserError(f"{where}: speakers must be a list of {len(tokens)} names, found {quoted(speakers)}")
        genre = fields.get("genre", "")
        if not _is_text(genre):
            raise UserError(f"{where}: genre must be a text, found {quoted(genre)}")
        lengths = list(map(len, tokens))
        return CorefItem(
            sentences=tokens,
            speakers=[speaker for speaker, n in zip(speakers, lengths, strict=True) for _ in range(n)],
            genre=genre,
            gold=CorefGold(number=0, name=genre, part="000", sentence_lengths=lengths, clusters=[]),
        )

    def to_json(self, item: CorefItem, prediction: list[list[tuple[int, int]]]) -> dict[str, Any]:
        """The clusters, each a list of mentions with their text, first token and token after the last."""
        tokens = [token for sentence in item.sentences for token in sentence]
        clusters = [
            [{"text": " ".join(tokens[start:stop]), "start": start, "stop": stop} for start, stop in sorted(cluster)]
            for cluster in prediction
        ]
        return {"tokens": tokens, "clusters": clusters}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def cut(item: CorefItem, first: int, n_sentences: int) -> CorefItem:
    """Some consecutive sentences; clusters keep their mentions within, and are dropped with fewer than two."""
    lengths = item.gold["sentence_lengths"]
    begin = sum(lengths[:first])
    end = begin + sum(lengths[first : first + n_sentences])
    inside = [
        [(start - begin, stop - begin) for start, stop in cluster if begin <= start and stop <= end]
        for cluster in item.gold["clusters"]
    ]
    gold = CorefGold(
        number=item.gold["number"],
        name=item.gold["name"],
        part=item.gold["part"],
        sentence_lengths=lengths[first : first + n_sentences],
        clusters=[cluster for cluster in inside if len(cluster) > 1],
    )
    return CorefItem(item.sentences[first : first + n_sentences], item.speakers[begin:end], item.genre, gold)


def _distinct(documents: Iterable[Document]) -> Iterator[Document]:
    """The same documents, checked: the official scorer must tell them apart by name and part.

    Raises:
        UserError: naming the first that comes twice.
    """
    seen: dict[tuple[str, str], Document] = {}
    for document in documents:
        first = seen.setdefault((document.name, document.part), document)
        if first is not document:
            raise UserError(
                f"{document.path}:{document.line}: document ({shortened(document.name, 40)}); "
                f"part {shortened(document.part, 40)} for a second time; "
                f"the first one is at {first.path}:{first.line}"
            )
        yield document


def _item(document: Document, number: int) -> CorefItem:
    gold = CorefGold(
        number=number,
        name=document.name,
        part=document.part,
        sentence_lengths=[len(sentence.rows) for sentence in document.sentences],
        clusters=read_clusters(document),
    )
    return CorefItem(
        sentences=[sentence.tokens for sentence in document.sentences],
        speakers=[speaker for sentence in document.sentences for speaker in sentence.column(SPEAKER)],
        genre=document.name.rpartition("/")[0].partition("/")[0],
        gold=gold,
    )
