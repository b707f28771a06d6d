"""The time of a biLM's training step: ``python benchmarks/lm.py [size=mini,small] [rows=512] [profile=true]``.

A step is what ``task=lm`` does with a window of the bundled text at ``trainer.precision=bf16-mixed``: forward and
backward pass, clipping, update. Three implementations alternate, so that a busy machine slows them alike, and the best
step of each counts: ours, with ``rows`` rows; the earlier one (``plain_lm.py``) with its optimizer and its 128 rows;
and the earlier one in 32 bits. Next to the tokens a second are printed the FLOPs of a step's matrix products (each
distinct word of the window over its own characters; the backward pass counts as twice the forward pass), their rate
relative to that of a large product of 16-bit numbers measured in the same minute, and the difference of loss and
gradient between ours and the earlier one in 32 bits. ``profile`` prints the operations that take longest. Time is CPU
time divided by the number of threads; set OMP_NUM_THREADS.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial

import torch
from bilm import SAMPLE, SIZES
from flops import training_gflop
from machine import ceiling, peak_megabytes
from plain_lm import PlainLanguageModel
from torch import nn
from torch.profiler import ProfilerActivity, profile

from elmo_tasks.bilm import BiLM
from elmo_tasks.data.corpus import LmVocabulary, TextFiles
from elmo_tasks.data.lm import LmData
from elmo_tasks.data.windows import LmBatch
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.nn.characters import PADDING
from elmo_tasks.nn.linear import product
from elmo_tasks.training.memory import keep_freed_memory, limit_primitive_caches

VOCABULARY, SAMPLES, WINDOW, DROPOUT = 50_000, 2048, 20, 0.1
PLAIN_ROWS, N_WARM_UP = 128, 3


def cpu_seconds() -> float:
    return time.process_time() / torch.get_num_threads()


def windows(n_rows: int) -> Iterator[LmBatch]:
    """Windows of the bundled text, repeated; the vocabulary is filled up to its full size."""
    text = TextFiles(root=str(SAMPLE), train="lm/en/train-*", heldout="lm/en/heldout*")
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


class Contender:
    """A model with its optimizer, and the time of its best step."""

    def __init__(self, size: str, kind: type[LanguageModel], rows: int, bfloat16: bool, dropout: float) -> None:
        torch.manual_seed(0)
        self.options = SIZES[size] or BiLM.load(size).options
        self.rows, self.bfloat16, self.best = rows, bfloat16, float("inf")
        self.model = kind(bilm=BiLM(self.options), vocabulary_size=VOCABULARY, n_samples=SAMPLES, dropout=dropout)
        adagrad = partial(torch.optim.Adagrad, lr=0.2, initial_accumulator_value=1.0)
        adam = partial(torch.optim.Adam, lr=0.001, fused=True)
        self.optimizer = (adagrad if kind is PlainLanguageModel else adam)(self.model.parameters())
        self.text = windows(rows)

    def loss(self, batch: LmBatch) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            return self.model.loss(self.model(batch), batch)

    def step(self) -> None:
        start = cpu_seconds()
        self.batch = next(self.text)
        self.optimizer.zero_grad()
        self.loss(self.batch).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
        self.optimizer.step()
        self.taken = cpu_seconds() - start

    @property
    def tokens_a_second(self) -> float:
        return self.rows * WINDOW / self.best


def bfloat16_ceiling() -> float:
    """GFLOP/s of a large product of 16-bit numbers."""
    a, b = (torch.randn(2048, 2048).bfloat16() for _ in range(2))
    times = []
    for _ in range(10):
        start = cpu_seconds()
        product(a, b)
        times.append(cpu_seconds() - start)
    return 2 * 2048**3 / min(times) / 1e9


def difference(size: str) -> tuple[float, float]:
    """The differences of loss and gradient in 32 bits, relative to those of the earlier implementation."""
    ours, plain = (Contender(size, kind, 16, False, dropout=0.0) for kind in (LanguageModel, PlainLanguageModel))
    batch = next(ours.text)
    losses, gradients = [], []
    for contender in (ours, plain):
        loss = contender.loss(batch)
        losses.append(float(loss.detach()))
        gradients.append(
            torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(contender.model.parameters()))])
        )
    return abs(losses[0] / losses[1] - 1), float((gradients[0] - gradients[1]).norm() / gradients[1].norm())


def print_size(size: str, n_rows: int, n_steps: int, peak: float) -> Contender:
    ours = Contender(size, LanguageModel, n_rows, bfloat16=True, dropout=DROPOUT)
    plain = Contender(size, PlainLanguageModel, PLAIN_ROWS, bfloat16=True, dropout=DROPOUT)
    exact = Contender(size, PlainLanguageModel, PLAIN_ROWS, bfloat16=False, dropout=DROPOUT)
    for number in range(N_WARM_UP + n_steps):
        for contender in (ours, plain, exact):
            contender.step()
            if number >= N_WARM_UP:
                contender.best = min(contender.best, contender.taken)
    lengths = (ours.batch.char_ids != PADDING).sum(dim=1).numpy()
    parts = training_gflop(ours.options, lengths, ours.batch.words.numel(), SAMPLES)
    peak = max(peak, bfloat16_ceiling())
    total = sum(parts.values())
    shares = ", ".join(f"{name} {part / total:.0%}" for name, part in parts.items())
    print(
        f"{size:6}{ours.tokens_a_second:7,.0f} tokens/s; earlier {plain.tokens_a_second:6,.0f}: "
        f"{ours.tokens_a_second / plain.tokens_a_second:.2f} times; earlier in 32 bits {exact.tokens_a_second:6,.0f}: "
        f"{ours.tokens_a_second / exact.tokens_a_second:.2f} times\n"
        f"{'':6} a step of {n_rows} x {WINDOW} takes {ours.best:.2f} s for {total:.0f} GFLOP ({shares}): "
        f"{total / ours.best:.0f} GFLOP/s, {total / ours.best / peak:.0%} of the best products ({peak:.0f})\n"
        f"{'':6} loss and gradient in 32 bits differ by {' and '.join(f'{d:.0e}' for d in difference(size))}",
        flush=True,
    )
    return ours


def main(arguments: list[str]) -> None:
    settings = dict(argument.split("=", 1) for argument in arguments)
    keep_freed_memory()
    limit_primitive_caches()
    peak = bfloat16_ceiling()
    best = f"{peak:.0f} GFLOP/s in 16 bits, {ceiling(cpu_seconds):.0f} in 32"
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; large products at {best}")
    for size in settings.get("size", "mini,small").split(","):
        ours = print_size(size, int(settings.get("rows", 512)), int(settings.get("steps", 8)), peak)
        if settings.get("profile") == "true":
            with profile(activities=[ProfilerActivity.CPU]) as profiled:
                for _ in range(2):
                    ours.step()
            print(profiled.key_averages().table(sort_by="self_cpu_time_total", row_limit=22, max_name_column_width=60))
    print(f"peak memory of all three together: {peak_megabytes():,.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
