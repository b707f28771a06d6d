"""Text for language models: one tokenised sentence a line, plain or compressed, streamed and never held whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from elmo_tasks.bilm.chars import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.data.text import read_lines
from elmo_tasks.errors import UserError

UNKNOWN = "<UNK>"

_MAX_TOKENS = 5_000


def find_shards(root: str | Path, pattern: str, option: str) -> list[Path]:
    """The files below ``root`` that match ``pattern``, sorted.

    Raises:
        UserError: if there are none; the message names ``option``.
    """
    shards = sorted(Path(root).glob(pattern))
    if not shards:
        raise UserError(f"{Path(root) / pattern}: no text found; set {option} (and data.root) to your files")
    return shards


def read_sentences(path: Path) -> Iterator[list[str]]:
    """Token lists of one file; empty lines are passed over.

    Raises:
        UserError: naming file and line, if the file cannot be decoded or a line is far too long for a sentence.
    """
    for number, line in read_lines(path):
        tokens = line.split()
        if len(tokens) > _MAX_TOKENS:
            raise UserError(f"{path}:{number}: {len(tokens)} tokens; expected one sentence a line")
        if tokens:
            yield tokens


def portions(sentences: Iterable[list[str]], n_tokens: int) -> Iterator[list[list[str]]]:
    """Sentences in lists of at least ``n_tokens`` tokens, but for the last one."""
    portion: list[list[str]] = []
    size = 0
    for sentence in sentences:
        portion.append(sentence)
        size += len(sentence)
        if size >= n_tokens:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


class LmVocabulary:
    """The words that the softmax predicts, most frequent first, behind the two sentence marks and ``<UNK>``."""

    def __init__(self, words: Sequence[str]) -> None:
        expected = [BEGIN_SENTENCE, END_SENTENCE, UNKNOWN]
        if list(words[:3]) != expected:
            raise UserError(f"a biLM vocabulary must begin with {' '.join(expected)}, found {' '.join(words[:3])}")
        self.words = list(words)
        self.ids = {word: k for k, word in enumerate(self.words)}
        self.unknown = self.ids[UNKNOWN]

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, word: str) -> int:
        return self.ids.get(word, self.unknown)

    @classmethod
    def count(cls, shards: Sequence[Path], max_size: int, min_count: int) -> tuple[LmVocabulary, int]:
        """Count a corpus once.

        Returns:
            the vocabulary, and the number of positions of one epoch: the tokens and one sentence mark a sentence.
        """
        counts: Counter[str] = Counter()
        n_sentences = 0
        for shard in shards:
            for sentence in read_sentences(shard):
                counts.update(sentence)
                n_sentences += 1
        frequent = sorted(((-n, word) for word, n in counts.items() if n >= min_count))
        words = [BEGIN_SENTENCE, END_SENTENCE, UNKNOWN]
        words += [word for _, word in frequent[: max(0, max_size - len(words))] if word not in words]
        return cls(words), counts.total() + n_sentences
