"""Windows over a stream of sentences for training a biLM, both reading directions at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import numpy as np
import torch
from torch import Tensor

from elmo_tasks.batch import OnDevice
from elmo_tasks.data.corpus import LmVocabulary
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE, character_id_table

Steps = list[tuple[str, str]]
"""The input word and the target word of some steps of a row, in one direction."""

PADDED_CHARACTERS = 7  # padding after the longest word: at least the width of the widest filter


@dataclass
class LmBatch(OnDevice):
    """One window of S steps over B rows of text.

    Attributes:
        char_ids: long ``[W, C]``, the characters of the window's distinct words.
        words: long ``[2, S, B]``, rows of ``char_ids``, by reading direction.
        targets: long ``[2, S, B]``, the vocabulary id of the word to predict.
        valid: bool ``[S, B]``, False where a row has no more text (only at the end of held-out text).
        gold: the targets, under the name that metrics expect.
    """

    char_ids: Tensor
    words: Tensor
    targets: Tensor
    valid: Tensor

    @property
    def gold(self) -> Tensor:
        return self.targets


def cut_windows(
    sentences: Iterator[list[str]], n_rows: int, n_steps: int, vocabulary: LmVocabulary, wanted: slice, skip: int = 0
) -> Iterator[LmBatch]:
    """Cut sentences into windows until no sentence is left.

    Args:
        sentences: each is appended to the first row with fewer than S words.
        n_rows: rows B of text.
        n_steps: S of a window.
        vocabulary: of the targets.
        wanted: the rows of each window that its batch has.
        skip: number of windows to skip.
    """
    rows = [_Row() for _ in range(n_rows)]
    exhausted = False
    for number in count():
        for row in rows:
            while len(row) < n_steps and not exhausted:
                sentence = next(sentences, None)
                exhausted = sentence is None
                if sentence is not None:
                    row.append(sentence)
        if not any(rows):
            return
        cuts = [row.take(n_steps) for row in rows]
        if number >= skip:
            yield _window(cuts[wanted], n_steps, vocabulary)


def _window(cuts: Sequence[tuple[Steps, Steps]], n_steps: int, vocabulary: LmVocabulary) -> LmBatch:
    padding = (END_SENTENCE, END_SENTENCE)
    parts = [cut[direction] for direction in (0, 1) for cut in cuts]
    inputs, targets = zip(*(step for part in parts for step in part + [padding] * (n_steps - len(part))), strict=True)
    distinct = {word: k for k, word in enumerate(dict.fromkeys(inputs))}
    shape = (2, len(cuts), n_steps)

    def steps_first(ids: list[int]) -> Tensor:
        return torch.from_numpy(np.array(ids, dtype=np.int64).reshape(shape)).transpose(1, 2).contiguous()

    lengths = torch.tensor([len(forward) for forward, _ in cuts])
    return LmBatch(
        char_ids=character_id_table(list(distinct), extra=PADDED_CHARACTERS),
        words=steps_first([distinct[w] for w in inputs]),
        targets=steps_first([vocabulary[w] for w in targets]),
        valid=torch.arange(n_steps).unsqueeze(1) < lengths,
    )


class _Row:
    """The text queued in one row, in both directions."""

    def __init__(self) -> None:
        self.forward: Steps = []
        self.backward: Steps = []

    def __len__(self) -> int:
        return len(self.forward)

    def append(self, sentence: list[str]) -> None:
        words = [BEGIN_SENTENCE, *sentence, END_SENTENCE]
        self.forward += pairwise(words)
        self.backward += pairwise(words[::-1])

    def take(self, n: int) -> tuple[Steps, Steps]:
        """Remove the next n steps (fewer at the end of the text) of both directions and return them."""
        cut = self.forward[:n], self.backward[:n]
        del self.forward[:n], self.backward[:n]
        return cut
