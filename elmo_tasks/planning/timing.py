"""How fast this machine is: an encoder, or a function of batches, tried for some seconds."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.encoders.base import Encoder

Sentences = Sequence[Sequence[str]]

SECONDS = 4.0
"""How long each thing is tried, about."""

_MIN_BATCHES = 4

clock = time.perf_counter
"""What seconds are measured by."""


@dataclass(frozen=True)
class ReadingRate:
    """Seconds that an encoder takes for a token, and in addition for each distinct word of a shard."""

    per_token: float
    per_word: float


def time_encoder(encoder: Encoder, sentences: Sentences) -> ReadingRate:
    """Time an encoder on some sentences, drawn at random; a biLM's words and LSTMs separately."""
    drawn = sorted(random.Random(0).sample(list(sentences), min(len(sentences), 2000)), key=len)
    if not isinstance(encoder, BiLM):
        return ReadingRate(_seconds_each(drawn, encoder.layers, lambda part: sum(map(len, part))), 0.0)
    words = list(dict.fromkeys(word for sentence in drawn for word in sentence))
    per_word = _seconds_each(words, encoder.encode, len)
    table = encoder.encode(words[:1])

    def lstms(part: list[Sequence[str]]) -> object:
        return encoder.layers(part, encode=lambda words: table.expand(len(words), -1))

    return ReadingRate(_seconds_each(drawn, lstms, lambda part: sum(map(len, part))), per_word)


def _seconds_each(items: list[Any], run: Callable[[list[Any]], object], count: Callable[[list[Any]], int]) -> float:
    """Seconds for a unit of some items, tried on more and more of them, from the middle, for about :data:`SECONDS`."""
    run(items[:1])  # once for what is built at the first call
    n = 4
    while True:
        part = items[(len(items) - n) // 2 :][:n] if n < len(items) else items
        start = clock()
        run(part)
        seconds = clock() - start
        if n >= len(items) or seconds > SECONDS / 2:
            return seconds / max(1, count(part))
        n *= 4


def time_batches(batches: Iterable[Any], sizes: Sequence[int], run: Callable[[Any], None]) -> list[tuple[int, float]]:
    """Size and seconds of some batches, their collation counted, for about :data:`SECONDS`.

    Args:
        batches: the first ones are tried.
        sizes: padded tokens of each batch.
        run: what is timed.
    """
    timed = []
    began = last = clock()
    for number, batch in enumerate(batches):
        run(batch)
        now = clock()
        timed.append((sizes[number], now - last))
        last = now
        if number >= _MIN_BATCHES and now - began > SECONDS:
            break
    return timed


def extrapolate(timed: Sequence[tuple[int, float]], sizes: Sequence[int]) -> float:
    """Seconds of all batches from those of some, in proportion to padded tokens; the first, a warm-up, is left out."""
    timed = timed[1:] or timed
    return sum(seconds for _, seconds in timed) / sum(size for size, _ in timed) * sum(sizes)


def distinct_words(sentences: Sentences, shard_tokens: int) -> int:
    """Words that an encoder reads of some sentences in shards; of a shard, each word once."""
    order = random.Random(0).sample(range(len(sentences)), len(sentences))
    words: set[str] = set()
    n_tokens = 0
    for k in order:
        words.update(sentences[k])
        n_tokens += len(sentences[k])
        if n_tokens >= shard_tokens:
            break
    total = sum(map(len, sentences))
    return round(len(words) * total / max(1, n_tokens))
