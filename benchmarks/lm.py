"""What a training step of a biLM costs: ``python benchmarks/lm.py [size=mini,small] [rows=128] [profile=true]``.

A step is what ``task=lm`` does with a window of the bundled text: forward and backward pass, clipping, update. Beside
the tokens a second stand the FLOPs that the products of a step ask for, each distinct word of the window over its own
characters, the products of the backward pass counted as twice those of the forward pass, and how the rate compares with
that of a large product in the same minute. The rest is what is no product: gates, gathering rows, the update.
``profile`` prints the operations that take longest. Time is CPU time by thread, so that a busy machine counts for less;
set OMP_NUM_THREADS, and compare the ratios with those of another run.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from itertools import islice

import torch
from bilm import SAMPLE, SIZES
from machine import ceiling, peak_megabytes
from torch import nn
from torch.profiler import ProfilerActivity, profile

from elmo_tasks.allocator import keep_large_blocks
from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.chars import PADDING
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.data.corpus import LmVocabulary, Shards
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.windows import LmBatch
from elmo_tasks.models.lm import LanguageModel

VOCABULARY, SAMPLES, WINDOW, DROPOUT = 50_000, 2048, 20, 0.1
N_WARM_UP = 2


def cpu_seconds() -> float:
    return time.process_time() / torch.get_num_threads()


def windows(n_rows: int) -> Iterator[LmBatch]:
    """Windows of the bundled text, over and over; its words are spread over a vocabulary of the full size."""
    text = Shards(root=str(SAMPLE), train="lm/en/train-*", heldout="lm/en/heldout*")
    words = dict.fromkeys(word for sentence in text.sentences("train") for word in sentence)
    filling = [f"{k}" for k in range(VOCABULARY) if str(k) not in words]
    vocabulary = LmVocabulary([*("<S>", "</S>", "<UNK>"), *words, *filling][:VOCABULARY])
    data = LmData(
        text=text,
        batch_size=n_rows,
        window=WINDOW,
        vocabulary_size=VOCABULARY,
        min_count=1,
        seed=1,
        vocabulary=vocabulary,
    )
    data.read()
    return iter(data.train_dataloader())


def flops(options: BiLMOptions, batch: LmBatch) -> dict[str, float]:
    """GFLOP of the products of one step, by part."""
    n_positions = batch.words.numel()  # both directions
    n_filters = sum(count for _, count in options.filters)
    lengths = (batch.char_ids != PADDING).sum(dim=1) + 7
    convolutions = sum(
        int((2 * (lengths - width + 1) * width * options.character_dim * count).sum())
        for width, count in options.filters
    )
    of_words = convolutions + len(lengths) * (
        options.n_highway * 4 * n_filters**2 + 2 * n_filters * options.projection_dim
    )
    step = 2 * (2 * options.projection_dim * 4 * options.dim + options.dim * options.projection_dim)
    softmax = 2 * (SAMPLES + 1) * options.projection_dim
    forward = {
        "encoder": of_words,
        "LSTM": options.n_layers * step * n_positions,
        "softmax": softmax * n_positions,
    }
    return {name: 3 * n / 1e9 for name, n in forward.items()}


def step(model: LanguageModel, optimizer: torch.optim.Optimizer, batch: LmBatch) -> None:
    optimizer.zero_grad()
    model.loss(model(batch), batch).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()


def main(arguments: list[str]) -> None:
    settings = dict(argument.split("=", 1) for argument in arguments)
    n_rows, n_steps = int(settings.get("rows", 128)), int(settings.get("steps", 8))
    keep_large_blocks()
    peak = ceiling(cpu_seconds)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, products at {peak:.0f} GFLOP/s at best")
    for size in settings.get("size", "mini,small").split(","):
        torch.manual_seed(0)
        options = SIZES[size] or BiLM.load(size).options
        model = LanguageModel(bilm=BiLM(options), vocabulary_size=VOCABULARY, n_samples=SAMPLES, dropout=DROPOUT)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.2, initial_accumulator_value=1.0)
        text, seconds, parts = windows(n_rows), [], {}
        for number in range(N_WARM_UP + n_steps):
            start = cpu_seconds()
            batch = next(text)
            step(model, optimizer, batch)
            if number >= N_WARM_UP:
                seconds.append(cpu_seconds() - start)
                parts = flops(options, batch)
        peak = max(peak, ceiling(cpu_seconds))
        total, median = sum(parts.values()), statistics.median(seconds)
        shares = ", ".join(f"{name} {part / total:.0%}" for name, part in parts.items())
        print(
            f"{size:9}{n_rows * WINDOW / median:7,.0f} tokens/s; a step of {n_rows} x {WINDOW} takes {median:.2f} s "
            f"for {total:.0f} GFLOP ({shares}): {total / median:.0f} GFLOP/s, {total / median / peak:.0%} of the best "
            f"products; peak {peak_megabytes():,.0f} MB",
            flush=True,
        )
        if settings.get("profile") == "true":
            with profile(activities=[ProfilerActivity.CPU]) as profiled:
                for batch in islice(text, 2):
                    step(model, optimizer, batch)
            print(profiled.key_averages().table(sort_by="self_cpu_time_total", row_limit=22, max_name_column_width=60))


if __name__ == "__main__":
    main(sys.argv[1:])
