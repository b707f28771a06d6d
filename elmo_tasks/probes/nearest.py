"""The occurrences of words that are nearest to a word in its context, by biLM layer, in one pass over a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from elmo_tasks.bilm import BiLM
from elmo_tasks.data.corpus import portions
from elmo_tasks.errors import UserError

CANDIDATES = ("all", "same", "other")

_PORTION_TOKENS = 20_000  # tokens whose layers are in memory at a time
_DECIMALS = 6  # smaller differences come from batching, not from the words


@dataclass(frozen=True)
class Occurrence:
    """A word and its sentence."""

    tokens: tuple[str, ...]
    position: int

    @property
    def word(self) -> str:
        return self.tokens[self.position]


@dataclass
class Nearest:
    """The k best occurrences of a stream, at most one per sentence; ties keep their order."""

    k: int
    found: list[tuple[float, Occurrence]] = field(default_factory=list)

    def offer(self, cosine: float, occurrence: Occurrence) -> None:
        """Keep the occurrence if it is among the best."""
        repeated = next((k for k, (_, kept) in enumerate(self.found) if kept.tokens == occurrence.tokens), None)
        if repeated is not None and self.found[repeated][0] >= cosine:
            return
        if repeated is not None:
            del self.found[repeated]
        place = sum(kept >= cosine for kept, _ in self.found)
        self.found.insert(place, (cosine, occurrence))
        del self.found[self.k :]


def nearest(
    bilm: BiLM, sources: Sequence[Occurrence], sentences: Iterable[list[str]], k: int, candidates: str = "all"
) -> list[list[Nearest]]:
    """The nearest occurrences to each source, by layer, in one pass over ``sentences``.

    Args:
        bilm: the biLM; its state is reset for each sentence.
        sources: words in context; a sentence equal to a source's own is skipped for that source.
        sentences: any number; the layers of one portion at a time are in memory.
        k: how many to keep.
        candidates: ``all`` tokens, those of the source's word (``same``, ignoring case), or those of ``other`` words.
    """
    found = [[Nearest(k) for _ in range(bilm.n_layers)] for _ in sources]
    words = [source.word.casefold() for source in sources]
    queries = torch.stack([bilm.layers([list(source.tokens)])[0][:, source.position] for source in sources])
    queries = F.normalize(queries, dim=2)  # [S, L, D]
    for portion in portions(sentences, _PORTION_TOKENS):
        for tokens, layers in zip(portion, bilm.layers(portion), strict=True):
            sentence, folded = tuple(tokens), [token.casefold() for token in tokens]
            cosines = torch.einsum("sld,ltd->slt", queries, F.normalize(layers, dim=2)).numpy()
            for s, source in enumerate(sources):
                if sentence != source.tokens:
                    allowed = _allowed(np.array([word == words[s] for word in folded]), candidates)
                    for layer, best in enumerate(found[s]):
                        _offer_best(best, cosines[s, layer], allowed, sentence)
    return found


def _allowed(same: NDArray[np.bool_], candidates: str) -> NDArray[np.bool_]:
    return {"all": np.ones_like(same), "same": same, "other": ~same}[candidates]


def _offer_best(
    best: Nearest, cosines: NDArray[np.float32], allowed: NDArray[np.bool_], sentence: tuple[str, ...]
) -> None:
    if allowed.any():
        position = int(np.where(allowed, cosines.round(_DECIMALS), -np.inf).argmax())
        best.offer(round(float(cosines[position]), _DECIMALS), Occurrence(sentence, position))


def find_source(word: str, sentence: str) -> Occurrence:
    """The marked (``a *play* on words``) or first occurrence of a word, ignoring case.

    Raises:
        UserError: if it is not in the sentence.
    """
    tokens = sentence.split()
    marked = [k for k, token in enumerate(tokens) if len(token) > 2 and token[0] == token[-1] == "*"]
    plain = tuple(token[1:-1] if k in marked else token for k, token in enumerate(tokens))
    for k in marked or range(len(plain)):
        if plain[k].casefold() == word.casefold():
            return Occurrence(plain, k)
    raise UserError(f"{word!r} is not {'marked' if marked else 'a token'} in the sentence {sentence!r}")


def first_sources(word: str, sentences: Iterable[list[str]], n: int) -> list[Occurrence]:
    """The word's first occurrences in n different sentences, ignoring case."""
    folded = word.casefold()
    found: dict[tuple[str, ...], Occurrence] = {}
    for tokens in sentences:
        for position, token in enumerate(tokens):
            if token.casefold() == folded:
                found.setdefault(tuple(tokens), Occurrence(tuple(tokens), position))
                break
        if len(found) == n:
            break
    return list(found.values())
