"""Text for language models: where its sentences come from, and the words that a biLM predicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from elmo_tasks.data.columns import METADATA
from elmo_tasks.data.files import find_matches, refuse_copies
from elmo_tasks.data.leaks import refuse_leaks
from elmo_tasks.data.text import read_lines
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.files import digest_training
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE, composed

UNKNOWN = "<UNK>"

_MAX_TOKENS = 5_000
_NO_TEXT = re.compile(r"~$|\.(bak|orig|old|md5|sha1|sha256|sha512|asc|sig)$")
_MAX_BYTES = 1_000_000  # of a line
_NUMBER, _N_NUMBERED = re.compile(r"(\d+)\t"), 3  # as many lines with numbers in order are no chance


class LmText(Protocol):
    """Training and held-out text: ``digest`` is that of the text, ``option`` the configuration key that chooses it."""

    digest: str
    option: str

    def shards(self, split: str) -> Iterable[Iterable[list[str]]]:
        """Token lists of ``train`` or ``dev``, in the parts that are shuffled."""


class TextFiles:
    """Text files with one tokenised sentence a line, plain or compressed.

    Args:
        root: folder of the text.
        train: file pattern of the training shards, below ``root``; shuffling permutes the shards.
        heldout: file pattern of the held-out text.
    """

    option = "task.lm.train and task.lm.heldout"

    def __init__(self, *, root: str, train: str, heldout: str) -> None:
        self.paths = {
            "train": find_shards(root, train, "task.lm.train"),
            "dev": find_shards(root, heldout, "task.lm.heldout"),
        }
        refuse_leaks(self.paths)
        self.digest = digest_training(self.paths["train"], self.paths["dev"])

    def shards(self, split: str) -> Iterator[Iterator[list[str]]]:
        return map(read_sentences, self.paths[split])


def find_shards(root: str | Path, pattern: str, option: str) -> list[Path]:
    """The files below ``root`` that match ``pattern``, sorted.

    Raises:
        UserError: as :func:`check_shards`, and if there are none; the message names ``option``.
    """
    if Path(pattern).is_absolute():
        raise UserError(f"{option}={pattern}: expected a file pattern below data.root={root}")
    shards = find_matches(Path(root), pattern, option)
    if not shards:
        raise UserError(f"{Path(root) / pattern}: no text found; set {option} (and data.root) to your files")
    check_shards(shards, f"{option}={pattern}")
    return shards


def check_shards(shards: Sequence[Path], pattern: str) -> None:
    """Check that the files that a pattern has matched are texts, each there once.

    Raises:
        UserError: naming a text that is also there compressed, or a checksum or backup.
    """
    refuse_copies(shards)
    for path in shards:
        if _NO_TEXT.search(path.name):
            raise UserError(f"{path}: a checksum or a backup, but it matches {pattern}; move it elsewhere")


def read_sentences(path: Path) -> Iterator[list[str]]:
    """Token lists of one file, composed (NFC); empty lines are skipped. Errors are those of :func:`read_lists`."""
    return filter(None, read_lists(path))


def read_lists(path: Path) -> Iterator[list[str]]:
    """Token lists of one file, composed (NFC), including those of empty lines.

    Raises:
        UserError: naming file and line, if the file cannot be decoded, a line is far too long for a sentence, or the
            first lines are numbered or those of CoNLL-U.
    """
    first: list[int] = []  # numbers before a tab, as long as each line has one
    for number, line in read_lines(path, _MAX_BYTES):
        if number == len(first) + 1 <= _N_NUMBERED and (found := _NUMBER.match(line)):
            first.append(int(found[1]))
        if (number == 1 and METADATA.match(line)) or (number == _N_NUMBERED and _are_numbered(first)):
            raise UserError(
                f"{path}:{number}: numbered lines, or CoNLL-U; expected one tokenised sentence a line and nothing "
                "else; cut -f2- FILE takes the numbers off"
            )
        tokens = composed(line).split()
        if len(tokens) > _MAX_TOKENS:
            raise UserError(f"{path}:{number}: {len(tokens)} tokens; expected one sentence a line")
        yield tokens


def _are_numbered(first: Sequence[int]) -> bool:
    return len(first) == _N_NUMBERED and list(first) == list(range(first[0], first[0] + _N_NUMBERED))


def portions(sentences: Iterable[list[str]], n_tokens: int) -> Iterator[list[list[str]]]:
    """Lists of sentences, all except the last with at least ``n_tokens`` tokens; an empty sentence counts as one."""
    portion: list[list[str]] = []
    size = 0
    for sentence in sentences:
        portion.append(sentence)
        size += max(1, len(sentence))
        if size >= n_tokens:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


class LmVocabulary:
    """The words that the softmax predicts, most frequent first, after the two sentence boundaries and ``<UNK>``.

    Args:
        words: in the order of their ids.
        source: where they come from, for messages.

    Raises:
        UserError: if the first three are others, or a word comes twice.
    """

    def __init__(self, words: Sequence[str], source: str = "a biLM vocabulary") -> None:
        expected = [BEGIN_SENTENCE, END_SENTENCE, UNKNOWN]
        if list(words[:3]) != expected:
            found = shortened(" ".join(words[:3]), 60) or "nothing"
            raise UserError(f"{source}: the first three lines must be {' '.join(expected)}, found {found}")
        self.words = list(words)
        self.ids = {word: k for k, word in enumerate(self.words)}
        self.unknown = self.ids[UNKNOWN]
        if len(self.ids) < len(self.words):
            twice = Counter(self.words).most_common(1)[0][0]
            raise UserError(f"{source}: {quoted(twice)} is in it twice")

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, word: str) -> int:
        return self.ids.get(word, self.unknown)

    @classmethod
    def read(cls, path: Path) -> LmVocabulary:
        """Read a file with one word per line, most frequent first. Words are composed (NFC), as in texts.

        Raises:
            UserError: if the file is not a vocabulary.
        """
        words = [line.strip() for _, line in read_lines(path, _MAX_BYTES)]
        present = set(words)  # where the composed form is in the file too, the other stays as it is: no text has it
        return cls([word if composed(word) in present else composed(word) for word in words], source=str(path))

    @classmethod
    def from_counts(cls, counts: Counter[str], max_size: int, min_count: int) -> LmVocabulary:
        """The most frequent words, ``max_size`` at most, including the three special tokens."""
        frequent = sorted(((-n, word) for word, n in counts.items() if n >= min_count))
        words = [BEGIN_SENTENCE, END_SENTENCE, UNKNOWN]
        words += [word for _, word in frequent[: max(0, max_size - len(words))] if word not in words]
        return cls(words)
