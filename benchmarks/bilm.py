"""How fast the biLM gives all layers of a text: ``python benchmarks/bilm.py [size=small] [tokens=25000] [TEXT]``.

TEXT has one tokenised sentence a line; without it, the bundled samples are read. The plain implementation is the usual
one: batches of 32 sentences in file order, the character CNN on every position including padding, one convolution for
each filter width, an LSTM that takes one step of one direction at a time. Weights are random, which costs the same as
trained ones. Ours is the best of three passes; the plain one, which takes minutes for the larger sizes, is one pass.
Set OMP_NUM_THREADS to the number of cores. Between runs, compare ratios rather than tokens a second.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from machine import ceiling, peak_megabytes
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_tasks.bilm import BiLM
from elmo_tasks.bilm.lstm import ProjectedLSTM
from elmo_tasks.bilm.options import BiLMOptions
from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE, character_id_table
from elmo_tasks.training.memory import keep_freed_memory

SAMPLE = Path(__file__).parents[1] / "elmo_tasks" / "bundled" / "sample"
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
SIZES = {
    "mini": None,  # the bundled weights
    "small": BiLMOptions(FILTERS, character_dim=16, n_highway=1, dim=1024, projection_dim=128),
    "original": BiLMOptions(FILTERS, character_dim=16, n_highway=2, dim=4096, projection_dim=512),
}
N_ROWS = 32


def plain_layers(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
    """The result of :meth:`BiLM.layers`, computed batch by batch in file order."""
    layers: list[Tensor] = []
    for first in range(0, len(sentences), N_ROWS):
        rows = [[BEGIN_SENTENCE, *s, END_SENTENCE] for s in sentences[first : first + N_ROWS]]
        n_steps = max(map(len, rows))
        ids = character_id_table([word for row in rows for word in row + [""] * (n_steps - len(row))], extra=50)
        tokens = plain_encoder(bilm, ids).view(len(rows), n_steps, -1)
        lengths = torch.tensor([len(row) for row in rows])
        outputs = [torch.cat([tokens, tokens], dim=2)]
        x = [tokens, tokens]
        for k, lstm in enumerate(bilm.lstms):
            out = [plain_direction(lstm, x[direction], lengths, direction) for direction in (0, 1)]
            x = [a + b for a, b in zip(out, x, strict=True)] if k and bilm.options.skip_connections else out
            outputs.append(torch.cat(x, dim=2))
        batch = torch.stack(outputs, dim=1)
        layers += [batch[k, :, 1 : len(row) - 1] for k, row in enumerate(rows)]
    return layers


def plain_encoder(bilm: BiLM, ids: Tensor) -> Tensor:
    encoder = bilm.encoder
    x = F.embedding(ids, encoder.characters).transpose(1, 2)  # [positions, character_dim, 50]
    features = []
    for (width, count), kernel in zip(encoder.filters, encoder.kernels, strict=True):
        weight = kernel.view(width, -1, count).permute(2, 1, 0)
        features.append(F.conv1d(x, weight).max(dim=2).values)
    h = F.relu(torch.cat(features, dim=1) + encoder.kernel_bias)
    for highway in encoder.highways:
        gate = torch.sigmoid(F.linear(h, highway.carry.weight, highway.carry.bias))
        h = gate * F.relu(F.linear(h, highway.transform.weight, highway.transform.bias)) + (1 - gate) * h
    projection = encoder.projection
    return F.linear(h, projection.weight, projection.bias) if isinstance(projection, nn.Linear) else h


def plain_direction(lstm: ProjectedLSTM, x: Tensor, lengths: Tensor, direction: int) -> Tensor:
    n_rows, n_steps, _ = x.shape
    weight, projection = lstm.weight[direction], lstm.w_projection[direction]
    h, c = x.new_zeros(n_rows, lstm.projection_dim), x.new_zeros(n_rows, lstm.dim)
    out = x.new_zeros(n_rows, n_steps, lstm.projection_dim)
    for t in reversed(range(n_steps)) if direction else range(n_steps):
        live = (t < lengths).unsqueeze(1)
        i, j, f, o = (torch.cat([x[:, t], h], dim=1) @ weight + lstm.bias[direction]).chunk(4, dim=1)
        new = torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j)
        c = torch.where(live, new.clamp(-lstm.cell_clip, lstm.cell_clip), c)
        m = (torch.sigmoid(o) * torch.tanh(c)) @ projection
        h = torch.where(live, m.clamp(-lstm.proj_clip, lstm.proj_clip), h)
        out[:, t] = h
    return out


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def best_of_three(call: Callable[[], Any]) -> tuple[float, Any]:
    return min((seconds(call) for _ in range(3)), key=lambda pair: pair[0])


def sample_sentences() -> list[list[str]]:
    """The contexts of the bundled SQuAD sample and the pairs of the SNLI sample, split at spaces."""
    texts: list[str] = []
    for path in sorted((SAMPLE / "snli").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            texts += [json.loads(line)[side] for side in ("sentence1", "sentence2")]
    for path in sorted((SAMPLE / "squad").glob("*.json")):
        for article in json.loads(path.read_text("utf-8"))["data"]:
            texts += [sentence for p in article["paragraphs"] for sentence in p["context"].split(". ")]
    return [text.split() for text in texts]


def first_tokens(sentences: Sequence[list[str]], n_tokens: int) -> list[list[str]]:
    chosen: list[list[str]] = []
    for sentence in sentences:
        if sum(map(len, chosen)) >= n_tokens:
            break
        chosen.append(sentence)
    return chosen


def relative_errors(found: Sequence[Tensor], exact: Sequence[Tensor]) -> list[float]:
    """For each layer, the root mean square of the differences divided by that of the exact numbers."""
    errors = torch.cat([(a - b).square().mean(dim=2) for a, b in zip(found, exact, strict=True)], dim=1)
    numbers = torch.cat([x.square().mean(dim=2) for x in exact], dim=1)
    return (errors.mean(dim=1) / numbers.mean(dim=1)).sqrt().tolist()


def flops(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> tuple[float, float]:
    """GFLOP of the least computation: each distinct word encoded once over its own characters, and the LSTMs."""
    options = bilm.options
    n_filters = sum(count for _, count in options.filters)
    words = {word for s in sentences for word in s}
    word_flops = 0.0
    for word in words:
        n = min(len(word.encode()) + 2, 50) + 7
        word_flops += sum(
            2 * (n - width + 1) * width * options.character_dim * count for width, count in options.filters
        )
        word_flops += options.n_highway * 4 * n_filters**2 + 2 * n_filters * options.projection_dim
    step = 2 * (2 * options.projection_dim * 4 * options.dim + options.dim * options.projection_dim)
    n_positions = sum(len(s) + 2 for s in sentences)
    return word_flops / 1e9, 2 * options.n_layers * step * n_positions / 1e9


def main(arguments: list[str]) -> None:
    settings = dict(a.split("=", 1) for a in arguments if "=" in a)
    files = [a for a in arguments if "=" not in a]
    text = [line.split() for line in Path(files[0]).read_text("utf-8").splitlines()] if files else sample_sentences()
    sentences = first_tokens([s for s in text if s], int(settings.get("tokens", 25000)))
    n_tokens = sum(map(len, sentences))
    distinct = len({word for s in sentences for word in s})
    keep_freed_memory()
    torch.manual_seed(0)
    peak = ceiling()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, products at {peak:.0f} GFLOP/s at best")
    print(f"{len(sentences):,} sentences, {n_tokens:,} tokens, {distinct:,} distinct")
    for size in settings.get("size", "mini,small,original").split(","):
        options = SIZES[size]
        bilm = BiLM.load("mini") if options is None else BiLM(options).eval().requires_grad_(False)
        with torch.no_grad():
            bilm.layers(sentences[:N_ROWS])
            before = peak_megabytes()
            ours, layers = best_of_three(partial(bilm.layers, sentences))
            words = list(dict.fromkeys(word for s in sentences for word in s))
            encoder_time, _ = best_of_three(partial(bilm.encoder.encode, words))
            memory = peak_megabytes() - before
            rounded = {}
            for precision in ("bfloat16", "int8"):
                bilm.precision = precision
                rounded[precision] = best_of_three(partial(bilm.layers, sentences))
            plain, expected = seconds(partial(plain_layers, bilm, sentences))
        difference = max(float((a - b).abs().max()) for a, b in zip(layers, expected, strict=True))
        for_words, for_lstm = flops(bilm, sentences)
        rate = (for_words + for_lstm) / ours
        print(
            f"{size:9}{n_tokens / ours:9,.0f} tokens/s, plain {n_tokens / plain:6,.0f}: {plain / ours:5.1f} times; "
            f"difference {difference:.0e}; encoder {encoder_time / ours:.0%} of the time "
            f"({for_words / encoder_time:.0f} GFLOP/s), LSTM {for_lstm / (ours - encoder_time):.0f} GFLOP/s, "
            f"together {rate / peak:.0%} of the best products; at most {memory:,.0f} MB more than with one batch",
            flush=True,
        )
        for precision, (taken, found) in rounded.items():
            errors = ", ".join(f"{error:.1e}" for error in relative_errors(found, layers))
            print(
                f"{'':9}{n_tokens / taken:9,.0f} tokens/s in {precision}, {ours / taken:.2f} times; "
                f"relative error of a layer {errors}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
