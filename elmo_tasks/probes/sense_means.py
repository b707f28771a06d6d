"""Senses by nearest neighbour (Table 5).

The vectors of the training instances in one biLM layer are averaged by sense, and an instance takes the sense of its
lemma whose mean is closest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_tasks.batch import mask_of
from elmo_tasks.data.senses import Instance, Lemma, SenseSentence
from elmo_tasks.elmo import ScalarMix
from elmo_tasks.store.store import Store

Vector = NDArray[np.float64]

_SENTENCES = 32  # sentences whose layers are in memory at a time


class SenseMeans:
    """The sum of the vectors of each sense's instances, and the choice among a lemma's senses.

    Args:
        inventory: the sense keys of each lemma in WordNet's order.
    """

    def __init__(self, inventory: Mapping[Lemma, Sequence[str]]) -> None:
        self.inventory = inventory
        self.sums: dict[str, Vector] = {}

    def add(self, keys: Sequence[str], vector: Vector) -> None:
        """Add an instance, ``[D]``; one with several senses counts for each of them."""
        for key in keys:
            self.sums[key] = self.sums[key] + vector if key in self.sums else vector

    def seen(self, lemma: Lemma) -> list[str]:
        """The senses of a lemma that have instances, in WordNet's order."""
        return [key for key in self.inventory.get(lemma, ()) if key in self.sums]

    def choose(self, lemma: Lemma, vector: Vector) -> str | None:
        """The seen sense whose mean has the largest cosine with ``vector``; of equal ones WordNet's first.

        Where no sense was seen, WordNet's first sense; None for a lemma that is not in WordNet.
        """
        senses = self.seen(lemma)
        if not senses:
            return next(iter(self.inventory.get(lemma, ())), None)
        sums = np.stack([self.sums[key] for key in senses])  # sums do as well as means: the cosine ignores length
        cosines = sums @ vector / np.maximum(np.linalg.norm(sums, axis=1), np.finfo(np.float64).tiny)
        return senses[int(cosines.argmax())]


@torch.no_grad()
def vectors(
    sentences: Sequence[SenseSentence], store: Store | None, mix: ScalarMix | None
) -> Iterator[tuple[Instance, Vector]]:
    """Each instance with its vector ``[D]`` (the mean over its words); zeros ``[1]`` without layers."""
    for start in range(0, len(sentences), _SENTENCES):
        portion = [sentence for sentence in sentences[start : start + _SENTENCES] if sentence.instances]
        if store is None or mix is None:
            yield from ((instance, np.zeros(1)) for sentence in portion for instance in sentence.instances)
            continue
        layers = store.padded([sentence.tokens for sentence in portion]).cpu()  # [B, L, T, D]
        lengths = torch.tensor([len(sentence.tokens) for sentence in portion])
        chosen = mix(layers, mask_of(lengths, layers.shape[2])).double().numpy()  # [B, T, D]
        for sentence, row in zip(portion, chosen, strict=True):
            for instance in sentence.instances:
                yield instance, row[instance.start : instance.end].mean(axis=0)
