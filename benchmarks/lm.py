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
from functools import partial

import numpy as np
import torch
from bilm import SAMPLE, SIZES
from flops import training_gflop
from machine import ceiling, peak_megabytes
from plain_lm import LmBatch, PlainLanguageModel
from torch import nn
from torch.profiler import ProfilerActivity, profile

from elmo_tasks.bilm import BiLM
from elmo_tasks.data.corpus import LmVocabulary, TextFiles
from elmo_tasks.nn.linear import product
from elmo_tasks.pretrain.inputs import Inputs, WordTable
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.step import TrainingStep
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.windows import PackedWindow
from elmo_tasks.training.memory import keep_freed_memory, limit_primitive_caches

VOCABULARY, SAMPLES, WINDOW, DROPOUT = 50_000, 2048, 20, 0.1
PLAIN_ROWS, N_WARM_UP = 128, 3


def cpu_seconds() -> float:
    return time.process_time() / torch.get_num_threads()


def read_text(n_rows: int) -> LmData:
    """The bundled text; the vocabulary is filled up to its full size."""
    text = TextFiles(root=str(SAMPLE), train="lm/en/train-*", heldout="lm/en/heldout*")
    words = dict.fromkeys(word for shard in text.shards("train") for sentence in shard for word in sentence)
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
    return data


class Contender:
    """A training, and the time of its best step.

    Args:
        size: of the biLM.
        plain: the earlier implementation.
        rows: of a window.
        bfloat16: whether products are in 16 bits.
        dropout: rate.
    """

    def __init__(self, size: str, plain: bool, rows: int, bfloat16: bool, dropout: float) -> None:
        torch.manual_seed(0)
        self.options = SIZES[size] or BiLM.load(size).options
        self.rows, self.bfloat16, self.best, self.plain = rows, bfloat16, float("inf"), plain
        kind = PlainLanguageModel if plain else LanguageModel
        self.model = kind(bilm=BiLM(self.options), vocabulary_size=VOCABULARY, n_samples=SAMPLES, dropout=dropout)
        self.data = read_text(rows)
        self.words = WordTable(self.data.pack.words)
        self.inputs = Inputs(self.data, self.words, SAMPLES, seed=1)
        self.windows, self.n_steps = self.data.windows(0), 0
        if plain:
            self.optimizer = torch.optim.Adagrad(self.model.parameters(), lr=0.2, initial_accumulator_value=1.0)
        else:
            adam = partial(torch.optim.Adam, lr=0.001, fused=True)
            window = (2, WINDOW, rows)
            self.training = TrainingStep(self.model.train(), self.words.char_ids, window, adam, 10.0, bfloat16)

    def loss(self, batch: LmBatch) -> torch.Tensor:
        """Of the earlier implementation."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            return self.model.loss(self.model(batch), batch)

    def step(self) -> None:
        start = cpu_seconds()
        self.window = next(self.windows)
        if self.plain:
            self.optimizer.zero_grad()
            self.loss(LmBatch.of(self.window, self.data)).backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 10.0)
            self.optimizer.step()
        else:
            self.training.run(*self.inputs.make(self.window, self.n_steps, None))
        self.n_steps += 1
        self.taken = cpu_seconds() - start

    def gradients(self, window: PackedWindow) -> tuple[float, torch.Tensor]:
        """The mean loss of a position and all gradients, those of the softmax first."""
        if not self.plain:
            self.training.backward(*self.inputs.make(window, 0, None))
            return float(self.training.loss), torch.cat(self.training.gradients)
        samples, tries = self.inputs._samples(0)
        self.model.candidates = torch.from_numpy(samples).long(), tries
        loss = self.loss(LmBatch.of(window, self.data))
        weights = [self.model.softmax_weight, self.model.softmax_bias, *self.model.bilm.parameters()]
        found = torch.autograd.grad(loss, weights)
        return float(loss.detach()) / WINDOW, torch.cat([g.flatten() for g in found])

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
    ours, plain = (Contender(size, kind, 16, False, dropout=0.0) for kind in (False, True))
    window = next(ours.windows)
    (loss, gradient), (plain_loss, plain_gradient) = (each.gradients(window) for each in (ours, plain))
    return abs(loss / plain_loss - 1), float((gradient - plain_gradient).norm() / plain_gradient.norm())


def print_size(size: str, n_rows: int, n_steps: int, peak: float) -> Contender:
    ours = Contender(size, False, n_rows, bfloat16=True, dropout=DROPOUT)
    plain = Contender(size, True, PLAIN_ROWS, bfloat16=True, dropout=DROPOUT)
    exact = Contender(size, True, PLAIN_ROWS, bfloat16=False, dropout=DROPOUT)
    for number in range(N_WARM_UP + n_steps):
        for contender in (ours, plain, exact):
            contender.step()
            if number >= N_WARM_UP:
                contender.best = min(contender.best, contender.taken)
    lengths = ours.words.lengths[np.unique(ours.window.inputs)]
    parts = training_gflop(ours.options, lengths, ours.window.inputs.size, SAMPLES)
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
