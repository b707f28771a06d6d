"""SNLI's size and layout: 550,152 training pairs in the official jsonl files, parses included."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .files import write_lines
from .language import Language, lengths, raw

N_PAIRS = {"train": 550_152, "dev": 10_000, "test": 10_000}
N_WORDS = 40_000
_PAIRS_PER_PREMISE = 3
_NO_MAJORITY = 0.002
_LABELS = ("entailment", "neutral", "contradiction")


def write_snli(root: Path, share: float, seed: int) -> dict[str, int]:
    """Write ``snli/snli_1.0_{train,dev,test}.jsonl`` below ``root``; the pairs of each split are returned."""
    counts = {split: max(_PAIRS_PER_PREMISE, round(n * share)) for split, n in N_PAIRS.items()}
    for k, (split, n) in enumerate(counts.items()):
        language = Language(N_WORDS, np.random.default_rng([seed, 1, k]))
        write_lines(root / "snli" / f"snli_1.0_{split}.jsonl", _pairs(language, n))
    return counts


def _pairs(language: Language, n: int) -> Iterator[str]:
    rng = language.rng
    premise: list[str] = []
    for number in range(n):
        if number % _PAIRS_PER_PREMISE == 0:
            premise = language.sentence(int(lengths(rng, 1, 14.1, 6.0, 3, 82)[0]))
        hypothesis = language.sentence(int(lengths(rng, 1, 8.3, 3.2, 2, 62)[0]))
        label = "-" if rng.random() < _NO_MAJORITY else _LABELS[int(rng.integers(3))]
        yield json.dumps(
            {
                "annotator_labels": [label],
                "captionID": f"{number // _PAIRS_PER_PREMISE}.jpg#0",
                "gold_label": label,
                "pairID": f"{number // _PAIRS_PER_PREMISE}.jpg#0r{number % _PAIRS_PER_PREMISE}",
                "sentence1": raw(premise),
                "sentence1_binary_parse": _binary(premise),
                "sentence1_parse": _parse(premise),
                "sentence2": raw(hypothesis),
                "sentence2_binary_parse": _binary(hypothesis),
                "sentence2_parse": _parse(hypothesis),
            }
        )


def _binary(tokens: list[str]) -> str:
    """A right-branching tree."""
    return "".join(f"( {token} " for token in tokens[:-1]) + tokens[-1] + " )" * (len(tokens) - 1)


def _parse(tokens: list[str]) -> str:
    return "(ROOT (S " + " ".join(f"(NP (NN {token}))" for token in tokens) + "))"
