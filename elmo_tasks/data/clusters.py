"""The column of clusters in CoNLL-2012 files: reading, writing, merging."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TypedDict

from elmo_tasks.data.conll2012 import EMPTY, Document, Sentence
from elmo_tasks.errors import UserError, quoted

_PIECE = re.compile(r"(?P<open>\()?(?P<cluster>\d+)(?P<close>\))?")
_BRACKETS = r"(?:\(\d+\)?|\d+\))"
_CELL = re.compile(rf"{_BRACKETS}(?:\|?{_BRACKETS})*")  # the official scorer reads brackets without | too


class CorefGold(TypedDict):
    """A document as the scorer sees it: clusters of mentions (first token, token after the last, in the document)."""

    number: int
    name: str
    part: str
    sentence_lengths: list[int]
    clusters: list[list[tuple[int, int]]]


def read_clusters(document: Document) -> list[list[tuple[int, int]]]:
    """The clusters in the last column, mentions in order of their end.

    A closing bracket ends the mention of its cluster that began last, as the official scorer has it. So mentions of one
    cluster can nest but not cross: ``(0 (0 0) 0)`` is always a short one within a long one. Mentions of different
    clusters may cross (see :func:`n_crossing`). A mention that is written twice in one cluster is there once, as the
    official scorer counts it (see :func:`n_written`).

    Raises:
        UserError: naming file and line, if a cell is malformed or brackets do not pair up within a sentence.
    """
    clusters: dict[int, list[tuple[int, int]]] = defaultdict(list)
    offset = 0
    for sentence in document.sentences:
        for start, stop, cluster in _mentions(sentence):
            mention = offset + start, offset + stop
            if mention not in clusters[cluster]:
                clusters[cluster].append(mention)
        offset += len(sentence.rows)
    return [clusters[cluster] for cluster in sorted(clusters)]


def n_written(document: Document) -> int:
    """How many mentions are written in the last column."""
    return sum(cell.count("(") for sentence in document.sentences for cell in sentence.column(-1))


def merged(clusters: Sequence[Sequence[tuple[int, int]]]) -> list[list[tuple[int, int]]]:
    """Clusters that share a mention as one, mentions in order of their end."""
    apart: list[set[tuple[int, int]]] = []
    for cluster in clusters:
        joined = set(cluster).union(*(other for other in apart if not other.isdisjoint(cluster)))
        apart = [other for other in apart if other.isdisjoint(cluster)] + [joined]
    return [sorted(cluster, key=lambda mention: mention[::-1]) for cluster in apart]


def n_repeated(clusters: Sequence[Sequence[tuple[int, int]]]) -> int:
    """How many mentions are repetitions of another."""
    return sum(map(len, clusters)) - len({mention for cluster in clusters for mention in cluster})


def n_crossing(clusters: Sequence[Sequence[tuple[int, int]]]) -> int:
    """How many mentions begin or end within another one without lying in it or around it."""
    mentions = sorted({mention for cluster in clusters for mention in cluster})
    crossing: set[tuple[int, int]] = set()
    for k, (start, stop) in enumerate(mentions):
        for later in mentions[k + 1 :]:
            if later[0] >= stop:
                break
            if start < later[0] and stop < later[1]:
                crossing |= {(start, stop), later}
    return len(crossing)


def write_document(gold: CorefGold, clusters: Sequence[Sequence[Sequence[int]]]) -> str:
    """A document in the scorer's format: its name, token numbers, and the column of clusters, between tabs."""
    opened: dict[int, list[str]] = defaultdict(list)
    closed: dict[int, list[str]] = defaultdict(list)
    by_width = sorted((start - stop, start, stop, k) for k, cluster in enumerate(clusters) for start, stop in cluster)
    for _, start, stop, k in by_width:  # wide ones open first and close last
        if stop - start == 1:
            opened[start].append(f"({k})")
        else:
            opened[start].append(f"({k}")
            closed[stop - 1].insert(0, f"{k})")
    lines = [f"#begin document ({gold['name']}); part {gold['part']}"]
    token = 0
    for length in gold["sentence_lengths"]:
        for k in range(length):
            cell = "|".join(opened[token] + closed[token]) or "-"
            lines.append(f"{gold['name']}\t{int(gold['part'])}\t{k}\t{cell}")
            token += 1
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def _mentions(sentence: Sentence) -> list[tuple[int, int, int]]:
    """First token, token after the last, and cluster of each mention of a sentence, in order of their end."""
    mentions: list[tuple[int, int, int]] = []
    opened: dict[int, list[int]] = defaultdict(list)
    for k, cell in enumerate(sentence.column(-1)):
        if cell in EMPTY:
            continue
        if not _CELL.fullmatch(cell):
            expected = "expected, for example, (3, 3), (3) or (3|(4)"
            raise UserError(f"{sentence.where(k)}: malformed mention {quoted(cell)}; {expected}")
        for match in _PIECE.finditer(cell):
            cluster = int(match["cluster"])
            if match["open"]:
                opened[cluster].append(k)
            if match["close"]:
                if not opened[cluster]:
                    found = f"a mention of cluster {cluster} is closed but was not opened in this sentence"
                    raise UserError(f"{sentence.where(k)}: {found}")
                mentions.append((opened[cluster].pop(), k + 1, cluster))
    for cluster, starts in opened.items():
        if starts:
            raise UserError(
                f"{sentence.where(starts[0])}: a mention of cluster {cluster} is not closed before the sentence ends"
            )
    return mentions
