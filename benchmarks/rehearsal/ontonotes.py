"""OntoNotes' size and layout as CoNLL-2012 has it: 2,802 training documents with predicates and coreference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .files import link, write_lines
from .language import Language, lengths

N_DOCUMENTS = {"train": 2_802, "dev": 343, "test": 348}
N_WORDS = 60_000
_GENRES = ("bc", "bn", "mz", "nw", "pt", "tc", "wb")
_PREDICATES_PER_TOKEN = 0.19  # 253,070 of 1.3 million training tokens
_MENTIONS_PER_TOKEN = 0.12
_MENTIONS_PER_CLUSTER = 4.4


def write_ontonotes(root: Path, share: float, seed: int) -> dict[str, int]:
    """Write a file a document below ``srl/{train,dev,test}``, and link ``coref`` to ``srl``.

    Returns:
        the documents of each split.
    """
    counts = {split: max(1, round(n * share)) for split, n in N_DOCUMENTS.items()}
    for k, (split, n) in enumerate(counts.items()):
        language = Language(N_WORDS, np.random.default_rng([seed, 3, k]))
        for number in range(n):
            genre = _GENRES[number % len(_GENRES)]
            name = f"{genre}/made/{number // 100:02d}/made_{number:04d}"
            path = root / "srl" / split / f"{name}.gold_conll"
            write_lines(path, _document(language, name))
    link(root / "coref", "srl")
    return counts


def _document(language: Language, name: str) -> Iterator[str]:
    rng = language.rng
    yield f"#begin document ({name}); part 000"
    n_sentences = int(lengths(rng, 1, 26.8, 22.0, 1, 180)[0])
    n_clusters = max(1, round(n_sentences * 17.3 * _MENTIONS_PER_TOKEN / _MENTIONS_PER_CLUSTER))
    for n_tokens in lengths(rng, n_sentences, 17.3, 11.0, 2, 150).tolist():
        words = language.sentence(n_tokens)
        predicates = sorted(rng.choice(n_tokens, rng.binomial(n_tokens, _PREDICATES_PER_TOKEN), replace=False).tolist())
        columns = [_arguments(rng, n_tokens, predicate) for predicate in predicates]
        mentions = _mentions(rng, n_tokens, n_clusters)
        for k, word in enumerate(words):
            lemma, frameset = (word, "01") if k in predicates else ("-", "-")
            first = [name, "0", str(k), word, "NN", "*", lemma, frameset, "-", f"speaker_{n_tokens % 3}", "*"]
            yield "   ".join([*first, *(column[k] for column in columns), mentions[k]])
        yield ""
    yield "#end document"


def _arguments(rng: np.random.Generator, n_tokens: int, predicate: int) -> list[str]:
    """The cells of one predicate: the verb, one argument before it and up to two after, none overlapping."""
    cells = ["*"] * n_tokens
    cells[predicate] = "(V*)"
    if predicate > 0 and rng.random() < 0.7:
        start = max(0, predicate - int(rng.geometric(0.3)))
        _open_and_close(cells, start, predicate, "ARG0")
    if predicate + 1 < n_tokens:
        stop = min(n_tokens, predicate + 1 + int(rng.geometric(0.2)))
        _open_and_close(cells, predicate + 1, stop, "ARG1")
        if stop + 1 < n_tokens and rng.random() < 0.4:
            _open_and_close(cells, stop, min(n_tokens, stop + 3), "ARGM-TMP")
    return cells


def _open_and_close(cells: list[str], start: int, stop: int, label: str) -> None:
    cells[start] = f"({label}{cells[start]}"
    cells[stop - 1] += ")"


def _mentions(rng: np.random.Generator, n_tokens: int, n_clusters: int) -> list[str]:
    """The cells of coreference: mentions one after the other, each of some cluster."""
    cells = ["-"] * n_tokens
    position = 0
    while position < n_tokens:
        width = min(int(rng.geometric(0.5)), n_tokens - position)
        if rng.random() < _MENTIONS_PER_TOKEN * 1.2:
            cluster = int(rng.integers(n_clusters))
            cells[position] = f"({cluster}" if width > 1 else f"({cluster})"
            if width > 1:
                cells[position + width - 1] = f"{cluster})"
        position += width if cells[position] != "-" else 1
    return cells
