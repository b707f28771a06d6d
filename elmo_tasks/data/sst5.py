"""Fine-grained sentiment: the Stanford Sentiment Treebank's trees, or the hub's sentences."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmo_tasks.data.labelled import LabelledReader, LabelledText
from elmo_tasks.data.text import check_tokens, read_lines, unescape_treebank
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.values import Size

N_LABELS = 5


class SstReader(LabelledReader):
    """Reads one tree a line; labels are 0 (very negative) to 4 (very positive).

    Args:
        phrases: train on every labelled subtree (as the paper's code) or on whole sentences. Dev and test are
            always whole sentences.
        min_phrase_tokens: leave out shorter subtrees (the whole sentence always stays).
        unescape: undo the Treebank's escapes (``-LRB-`` is ``(`` again), so that word vectors and the biLM see the
            text that they were trained on.
        encoding: of the files.
    """

    labels = ("very negative", "negative", "neutral", "positive", "very positive")

    def __init__(
        self, *, phrases: bool, min_phrase_tokens: Size = 1, unescape: bool = True, encoding: str = "utf-8"
    ) -> None:
        super().__init__(encoding=encoding)
        self.phrases, self.min_phrase_tokens, self.unescape = phrases, min_phrase_tokens, unescape

    def read_file(self, path: Path, split: str) -> list[LabelledText]:
        """All sentences, or subtrees, of a file of trees; empty lines are skipped."""
        items: list[LabelledText] = []
        for number, line in read_lines(path, encoding=self.encoding):
            if not line.strip():
                continue
            where = f"{path}:{number}"
            subtrees = parse_tree(line.strip(" \t"), where)
            sentence = subtrees[-1]
            check_tokens(sentence.tokens, where)
            if split != "train" or not self.phrases:
                items.append(self._at(where, self._clean(sentence)))
                continue
            long_enough = [s for s in subtrees[:-1] if len(s.tokens) >= self.min_phrase_tokens]
            self._count("short phrases", len(subtrees) - 1 - len(long_enough))
            items += [self._clean(subtree) for subtree in long_enough]
            items.append(self._at(where, self._clean(sentence)))
        return items

    def read_rows(self, rows: Iterable[Mapping[str, Any]], where: str, split: str) -> list[LabelledText]:
        """Hub rows with ``text`` (tokenised, spaces between) and ``label``, a number or its name."""
        if self.phrases:
            raise UserError(f"{where}: the hub's copy has whole sentences only; add task.reader.phrases=false")
        items = []
        for number, row in enumerate(rows):
            place = f"{where} row {number}"
            try:
                tokens, label = [t for t in row["text"].split(" ") if t], row["label"]
            except (KeyError, AttributeError) as error:
                raise UserError(f"{place}: expected the columns text and label ({error!r})") from error
            known = [*self.labels, *range(N_LABELS), *map(str, range(N_LABELS))]
            if isinstance(label, bool) or label not in known:
                raise UserError(f"{place}: label {quoted(label)} is not in 0 .. {N_LABELS - 1}")
            check_tokens(tokens, place)
            items.append(self._at(place, self._clean(LabelledText(tokens, known.index(label) % N_LABELS))))
        return items

    def group(self, item: LabelledText) -> Hashable:
        if self.phrases:
            raise UserError(
                "task.dev_share cannot cut dev off phrases, of which a sentence has many; add task.reader.phrases=false"
            )
        return super().group(item)

    def token(self, text: str) -> str:
        return unescape_treebank(text) if self.unescape else text

    def _clean(self, item: LabelledText) -> LabelledText:
        return LabelledText(list(map(self.token, item.tokens)), item.label)


_PIECE = re.compile(r"\((?P<label>[0-4])(?=[ (])|(?P<close>\))|(?P<word>[^ ()]+)|(?P<space> +)|(?P<bad>.)")


def parse_tree(line: str, where: str) -> list[LabelledText]:
    """All labelled subtrees of ``(label child child)`` or ``(label word)``, the whole tree last.

    Only the ASCII space separates: some words hold a no-break space.

    Raises:
        UserError: naming file, line and column of the first thing that is not a tree.
    """
    done: list[LabelledText] = []
    open_nodes: list[_Node] = []
    for piece in _PIECE.finditer(line):
        inside = open_nodes[-1] if open_nodes else None
        problem = _problem(piece, inside, finished=bool(done) and inside is None)
        if problem:
            found = quoted(line[piece.start() : piece.start() + 20])
            raise UserError(f"{where}: malformed tree at column {piece.start() + 1}: expected {problem}, found {found}")
        if piece["label"]:
            open_nodes.append(_Node(int(piece["label"])))
        elif piece["word"] and inside:
            inside.tokens, inside.is_leaf = [piece["word"]], True
        elif piece["close"] and inside:
            done.append(LabelledText(inside.tokens, inside.label))
            open_nodes.pop()
            if open_nodes:
                open_nodes[-1].tokens += inside.tokens
    if open_nodes or not done:
        raise UserError(f"{where}: malformed tree: the line ends before its last ')'")
    return done


@dataclass
class _Node:
    """A node whose bracket is still open."""

    label: int
    tokens: list[str] = field(default_factory=list)
    is_leaf: bool = False


def _problem(piece: re.Match[str], inside: _Node | None, finished: bool) -> str | None:
    """What was expected in place of a piece; None if it fits."""
    if piece["space"]:
        return None
    if finished:
        return "the end of the line"
    if piece["bad"] or (inside is None and not piece["label"]):
        return f"'(' and a label 0 .. {N_LABELS - 1}"
    if inside is not None and inside.is_leaf and not piece["close"]:
        return "')' after a word"
    if inside is not None and not inside.tokens and piece["close"]:
        return "a word or a subtree"
    if inside is not None and inside.tokens and piece["word"]:
        return "'(' or ')'"
    return None
