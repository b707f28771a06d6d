"""Text with word senses: the XML and key files of the unified WSD framework, and WordNet's index of senses."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from elmo_tasks.data.files import read_chunks
from elmo_tasks.data.text import check_tokens, read_lines, unescape_treebank
from elmo_tasks.errors import UserError, quoted, shortened

Lemma = tuple[str, str]
"""A lemma in lower case and its part of speech: ``n``, ``v``, ``a`` or ``r``."""

_POS = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}
_MAX_PIECE_BYTES = 1_000_000
_SENSE_TYPES = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # 5: an adjective's satellite


@dataclass(frozen=True)
class Instance:
    """A word, or several that are one lemma (``belong to``), whose sense is annotated.

    Attributes:
        lemma: the lemma that the word is a form of.
        start, end: its tokens in its sentence, ``end`` not counted.
        keys: the WordNet sense keys that are right.
    """

    lemma: Lemma
    start: int
    end: int
    keys: tuple[str, ...]


@dataclass
class SenseSentence:
    """Tokens, one for each word of the text, and the instances among them."""

    tokens: list[str]
    instances: list[Instance]


def read_sense_corpus(text: Path, keys: Path) -> Iterator[SenseSentence]:
    """The sentences of ``NAME.data.xml`` (plain or compressed) and ``NAME.gold.key.txt``, one at a time.

    The Treebank's escapes are undone. A document type is refused, so that no entity is ever expanded.

    Raises:
        UserError: naming file and line, if either cannot be read or they do not fit together.
    """
    gold = _read_keys(keys)
    parser = _Parser(text, gold)
    for chunk in read_chunks(text):
        yield from parser.feed(chunk)
    yield from parser.feed(b"", last=True)
    if gold:
        example = shortened(next(iter(gold)), 40)
        raise UserError(f"{keys}: {len(gold)} instances are not in {text.name}, such as {example}")


def _read_keys(path: Path) -> dict[str, tuple[str, ...]]:
    """The sense keys of each instance, by its name."""
    gold: dict[str, tuple[str, ...]] = {}
    for number, line in read_lines(path):
        name, *keys = line.split() or [""]
        if name and (not keys or not all(map(_is_key, keys)) or name in gold):
            raise UserError(f"{path}:{number}: expected a new instance and its sense keys, found {quoted(line)}")
        if name:
            gold[name] = tuple(keys)
    return gold


class _Parser:
    """Collects sentences from the events of an XML parser; takes each instance's keys out of ``gold``."""

    def __init__(self, path: Path, gold: dict[str, tuple[str, ...]]) -> None:
        self.path, self.gold = path, gold
        self.done: list[SenseSentence] = []
        self.sentence: SenseSentence | None = None
        self.word: list[str] | None = None
        self.attributes: Mapping[str, str] = {}
        self.n_fed = 0
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = lambda *_: self._fail("a document type, which is not read")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def feed(self, chunk: bytes, last: bool = False) -> list[SenseSentence]:
        """The sentences that end in this part of the file."""
        self.n_fed += len(chunk)
        try:
            self.parser.Parse(chunk, last)
            if self.n_fed - self.parser.CurrentByteIndex > _MAX_PIECE_BYTES:  # the parser starts it again and again
                self._fail(f"more than {_MAX_PIECE_BYTES:,} bytes without a tag; expected XML")
        except expat.ExpatError as error:
            raise UserError(f"{self.path}:{error.lineno}: not well-formed XML ({error})") from error
        except (LookupError, ValueError, TypeError) as error:  # an encoding that Python does not know, or no text has
            reason = shortened(str(error), 100)
            raise UserError(f"{self._where}: XML in an encoding that cannot be read ({reason})") from error
        done, self.done = self.done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sentence":
            self.sentence = SenseSentence([], [])
        elif name in ("wf", "instance"):
            if self.sentence is None or self.word is not None:
                self._fail(f"<{name}> that is not directly in a <sentence>")
            self.word, self.attributes = [], attributes

    def _characters(self, text: str) -> None:
        if self.word is not None:
            self.word.append(text)

    def _end(self, name: str) -> None:
        if name == "sentence" and self.sentence is not None:
            check_tokens(self.sentence.tokens, self._where)
            self.done.append(self.sentence)
            self.sentence = None
        elif name in ("wf", "instance") and self.sentence is not None and self.word is not None:
            start = len(self.sentence.tokens)
            self.sentence.tokens += map(unescape_treebank, "".join(self.word).split())
            if name == "instance":
                self.sentence.instances.append(self._instance(start, len(self.sentence.tokens)))
            self.word = None

    def _instance(self, start: int, end: int) -> Instance:
        name, lemma, pos = (self.attributes.get(key, "") for key in ("id", "lemma", "pos"))
        if not lemma or pos not in _POS or start == end:
            self._fail(
                f"an instance without text, lemma or a pos of {', '.join(_POS)}: id={quoted(name)} pos={quoted(pos)}"
            )
        if name not in self.gold:
            self._fail(f"instance {quoted(name)}, which has no line (or no further one) in the key file")
        return Instance((lemma.lower(), _POS[pos]), start, end, self.gold.pop(name))

    @property
    def _where(self) -> str:
        return f"{self.path}:{self.parser.CurrentLineNumber}"

    def _fail(self, found: str) -> NoReturn:
        raise UserError(f"{self._where}: found {found}")


def _is_key(key: str) -> bool:
    lemma, _, place = key.rpartition("%")
    return bool(lemma) and place[:1] in _SENSE_TYPES and place.count(":") == 4


def parse_lemma(key: str) -> Lemma:
    """The lemma of a sense key: ("art", "n") for ``art%1:09:00::``."""
    lemma, _, place = key.rpartition("%")
    return lemma.lower(), _SENSE_TYPES[place[0]]


def read_inventory(path: Path, lemmas: Container[Lemma]) -> dict[Lemma, list[str]]:
    """The sense keys of each of ``lemmas`` in WordNet's order (the first sense first), from its ``index.sense``.

    Raises:
        UserError: naming file and line, if a line is not ``key offset number count``.
    """
    numbered: dict[Lemma, list[tuple[int, str]]] = {}
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 4 or not _is_key(fields[0]) or not fields[2].isdecimal():
            raise UserError(
                f"{path}:{number}: expected a sense key, offset, sense number and count, found {quoted(line)}"
            )
        if (lemma := parse_lemma(fields[0])) in lemmas:
            numbered.setdefault(lemma, []).append((int(fields[2]), fields[0]))
    return {lemma: [key for _, key in sorted(senses)] for lemma, senses in numbered.items()}
