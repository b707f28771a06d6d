"""How fast this machine is: the encoder, a training step and a scoring step, each tried for some seconds."""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.data.batching import item_lengths
from elmo_tasks.data.module import TaskData
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.training.module import TaskModule

Sentences = Sequence[Sequence[str]]

SECONDS = 4.0
"""Of each probe, about."""

_MIN_BATCHES = 4

clock = time.perf_counter
"""What seconds are measured by."""


@dataclass(frozen=True)
class ReadingRate:
    """Seconds that an encoder takes for a token, and for each distinct word of a shard besides."""

    per_token: float
    per_word: float


def reading_rate(encoder: Encoder, sentences: Sentences) -> ReadingRate:
    """Time an encoder on some sentences, drawn at random; a biLM's words and LSTMs are timed apart."""
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
    """Seconds for a unit of some items, tried on ever more of those in the middle until :data:`SECONDS` have gone."""
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


@dataclass(frozen=True)
class StepCost:
    """What training and scoring take.

    Attributes:
        epoch_seconds: of all updates of an epoch.
        dev_seconds: of scoring the dev set.
        n_batches: updates of an epoch.
        peak_bytes: memory of this process after the largest batch, its data and optimizer included.
        bytes_before: the same before the first batch.
    """

    epoch_seconds: float
    dev_seconds: float
    n_batches: int
    peak_bytes: int
    bytes_before: int


def step_cost(
    module: TaskModule, data: TaskData, device: str, grad_norm: float | None, allow: Callable[[int], None]
) -> StepCost:
    """Time updates on random batches of an epoch, then one on its largest batch, and scoring on some of dev.

    Args:
        module: holds the model and makes its optimizer; the weights change.
        data: read, with a store whose layers need not be real.
        device: where to train.
        grad_norm: at which gradients are clipped; None for no bound.
        allow: is told the bytes that the largest batch will probably take before it is tried, and may raise.
    """
    before = peak_bytes()
    model = module.model.to(device)
    optimizer = module.make_optimizer([p for p in module.parameters() if p.requires_grad])
    epoch = data.epoch(0)
    items, batches = contents(epoch)
    sizes = batch_sizes(data, items, batches)

    def update(batch: Any) -> None:
        loss = module.training_step(batch.to(device), 0)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_norm or torch.inf).item()
        optimizer.step()

    model.train()
    timed = _time(iter(epoch), sizes, update)
    first = peak_bytes()
    typical, largest = max(sizes[: len(timed)]), max(sizes)
    if largest > typical:
        allow(before + round((first - before) * largest / typical))
        update(data.collate([items[k] for k in batches[sizes.index(largest)]]))
    model.eval()
    dev_items, dev_batches = contents(data.batches("dev"))
    dev_sizes = batch_sizes(data, dev_items, dev_batches)
    chosen = random.Random(0).sample(range(len(dev_sizes)), min(len(dev_sizes), 50))

    @torch.no_grad()
    def score(batch: Any) -> None:
        module.metric.update(model.decode(model(batch.to(device)), batch), batch.gold)

    some = (data.collate([dev_items[k] for k in dev_batches[number]]) for number in chosen)
    scored = _time(some, [dev_sizes[number] for number in chosen], score)
    module.metric.reset()
    return StepCost(
        epoch_seconds=_extrapolate(timed, sizes),
        dev_seconds=_extrapolate(scored, dev_sizes),
        n_batches=len(sizes),
        peak_bytes=peak_bytes(),
        bytes_before=before,
    )


def batch_sizes(data: TaskData, items: Sequence[Any], batches: Sequence[Sequence[int]]) -> list[int]:
    """Padded tokens of each batch of some items, in all rows that the model reads."""
    lengths = [item_lengths(data.reader, item) for item in items]
    rows = [data.reader.n_rows(item) for item in items]
    return [
        sum(rows[k] for k in batch) * sum(map(max, zip(*(lengths[k] for k in batch), strict=True))) for batch in batches
    ]


def contents(loader: DataLoader[Any]) -> tuple[Sequence[Any], list[list[int]]]:
    """The items of a loader, and which of them each batch has."""
    items: Any = loader.dataset
    batches: Any = loader.batch_sampler
    return items, list(batches)


def _time(batches: Iterable[Any], sizes: Sequence[int], run: Callable[[Any], None]) -> list[tuple[int, float]]:
    """Padded tokens and seconds of some batches, their collation counted; the first is only a warm-up, if it can be."""
    timed = []
    began = last = clock()
    for number, batch in enumerate(batches):
        run(batch)
        now = clock()
        timed.append((sizes[number], now - last))
        last = now
        if number >= _MIN_BATCHES and now - began > SECONDS:
            break
    return timed[1:] if len(timed) > 1 else timed


def _extrapolate(timed: Sequence[tuple[int, float]], sizes: Sequence[int]) -> float:
    """Seconds of all batches from those of some, in proportion to padded tokens."""
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


def peak_bytes() -> int:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
