"""Tagged words of the Penn Treebank's merged trees (``*.mrg``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elmo_tasks.data.text import read_lines
from elmo_tasks.errors import UserError, quoted

NULL_ELEMENT = "-NONE-"

_PIECE = re.compile(r"[()]|[^() \t\f\v]+")  # a word may hold a no-break space
_LEAF = re.compile(r"\([^() \t]+[ \t]+[^() \t]+[ \t]*\)")


def are_trees(path: Path, encoding: str | None = None) -> bool:
    """Whether a file has trees, and not columns, in which a token may be a bracket too.

    All lines up to the first leaf, such as ``(NN rain)``, begin with a bracket.
    """
    for line in (line.strip() for _, line in read_lines(path, encoding=encoding)):
        if line and (not line.startswith("(") or _LEAF.search(line)):
            return line.startswith("(")
    return False


def read_tagged_trees(path: Path, encoding: str | None = None) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """For each tree its place (file and first line) and its leaves ``(word, tag)``, null elements left in.

    A tree may take several lines, and its outermost bracket may have no label: ``( (S (NP (NN rain)) (VP ...)))``.

    Raises:
        UserError: naming file and line of what is not a tree.
    """
    leaves: list[tuple[str, str]] = []
    open_nodes: list[_Node] = []
    begin = number = 0
    for number, piece in _pieces(path, encoding):
        expected = _expected(piece, open_nodes)
        if expected:
            raise UserError(f"{path}:{number}: expected {expected}, found {quoted(piece)}")
        if piece == "(":
            begin = begin if open_nodes else number
            if open_nodes:
                open_nodes[-1].has_child = True
            open_nodes.append(_Node())
        elif piece == ")":
            node = open_nodes.pop()
            leaves += [] if node.has_child else [(node.words[1], node.words[0])]
            if not open_nodes:
                yield f"{path}:{begin}", leaves
                leaves = []
        else:
            open_nodes[-1].words.append(piece)
    if open_nodes:
        raise UserError(f"{path}:{number}: the file ends within the tree that begins in line {begin}")


def _pieces(path: Path, encoding: str | None) -> Iterator[tuple[int, str]]:
    """Brackets and what is between them, with their lines."""
    for number, line in read_lines(path, encoding=encoding):
        for piece in _PIECE.findall(line) if line.strip() else ():
            yield number, piece


@dataclass
class _Node:
    """A bracket that is still open: its label, and the word if it is a leaf."""

    words: list[str] = field(default_factory=list)
    has_child: bool = False


def _expected(piece: str, open_nodes: list[_Node]) -> str | None:
    """What should stand in place of a piece; None if it fits."""
    if not open_nodes:
        return None if piece == "(" else "'(' before a tree"
    node = open_nodes[-1]
    if len(node.words) == 2 and piece != ")":
        return "')' after a tag and its word"
    if len(node.words) < 2 and not node.has_child and piece == ")":
        return "a tag and its word, or subtrees, within brackets"
    if node.has_child and piece not in "()":
        return "'(' or ')' after a subtree"
    return None
