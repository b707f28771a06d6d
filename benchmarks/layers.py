"""Our recurrent layers and CRF against plain ones with the same numbers: ``python benchmarks/layers.py``.

Each pair of times is of one process, turn by turn; the best of several turns counts. Compare the ratios, not the times,
with those of another run, and set OMP_NUM_THREADS for the number of cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torchcrf
from machine import ceiling
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from elmo_tasks.allocator import keep_large_blocks
from elmo_tasks.nn.crf import CRF
from elmo_tasks.nn.gru import BiGRU
from elmo_tasks.nn.highway_lstm import AlternatingLSTM, HighwayLSTM

N_TURNS = 6


def best_ms(*calls: Callable[[], Any]) -> list[float]:
    """The best time of each call, all taken in turns."""
    best = [float("inf")] * len(calls)
    for _ in range(N_TURNS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], 1000 * (time.perf_counter() - start))
    return best


def forward_and_backward(model: nn.Module, x: Tensor, mask: Tensor) -> None:
    model(x, mask).sum().backward()


def line(name: str, ours: float, plain: float, difference: float, n_tokens: int) -> None:
    tokens = f"{1000 * n_tokens / ours:10,.0f}{1000 * n_tokens / plain:10,.0f}"
    print(f"{name:34}{ours:9.1f}{plain:9.1f}{plain / ours:8.2f}{tokens}{difference:12.1e}", flush=True)


class PlainCell(nn.Module):
    """One step of a :class:`HighwayLSTM`, as it is usually written."""

    def __init__(self, layer: HighwayLSTM) -> None:
        super().__init__()
        n_cells, width = layer.highway.shape
        self.of_input, self.of_hidden = nn.Linear(width, 6 * n_cells, bias=False), nn.Linear(n_cells, 5 * n_cells)
        self.of_input.weight.data = torch.cat([layer.of_input, layer.highway]).detach()
        self.of_hidden.weight.data, self.of_hidden.bias.data = layer.of_hidden.detach(), layer.bias.detach()

    def forward(self, word: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        i, f, o, r, g, highway = self.of_input(word).chunk(6, dim=1)
        of_i, of_f, of_o, of_r, of_g = self.of_hidden(hidden).chunk(5, dim=1)
        cell = torch.sigmoid(i + of_i) * torch.tanh(g + of_g) + torch.sigmoid(f + of_f) * cell
        gate = torch.sigmoid(r + of_r)
        return gate * torch.sigmoid(o + of_o) * torch.tanh(cell) + (1 - gate) * highway, cell


class PlainAlternatingLSTM(nn.Module):
    """The layers of an :class:`AlternatingLSTM`, a step at a time: a loop over modules."""

    def __init__(self, ours: AlternatingLSTM) -> None:
        super().__init__()
        self.cells = nn.ModuleList(PlainCell(layer) for layer in ours.layers)  # type: ignore[arg-type]

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        n_texts, n_tokens, _ = x.shape
        for k, cell_of_layer in enumerate(self.cells):
            hidden = cell = x.new_zeros(n_texts, cell_of_layer.of_hidden.in_features)  # type: ignore[union-attr, arg-type]
            outputs = [hidden] * n_tokens
            for t in reversed(range(n_tokens)) if k % 2 else range(n_tokens):
                real = mask[:, t : t + 1]
                hidden, cell = (torch.where(real, part, 0.0) for part in cell_of_layer(x[:, t], hidden, cell))
                outputs[t] = hidden
            x = torch.stack(outputs, dim=1)
        return x


def difference_of(ours: nn.Module, plain: nn.Module, x: Tensor, mask: Tensor) -> float:
    """The largest one of an output, or of the gradient of their sum by an input."""
    out, expected = ours(x, mask), plain(x, mask)
    gradient, expected_gradient = (torch.autograd.grad(each.sum(), x)[0] for each in (out, expected))
    return max(float((out - expected).abs().max()), float((gradient - expected_gradient).abs().max()))


def print_share_of_products(ours: float, plain: float, gflop: float) -> None:
    """How much of a time the products must take: no exact way can be faster than they are."""
    best = ceiling()
    rate, alone = 1000 * gflop / ours, 1000 * gflop / best
    print(f"{'':8}{gflop:.0f} GFLOP, {rate:.0f} GFLOP/s: {rate / best:.0%} of the best products ({best:.0f})", end="; ")
    print(f"nothing but products: {alone:.0f} ms, {plain / alone:.2f} times", flush=True)


def gflop_of_alternating_lstm(width: int, hidden: int, n_layers: int, n_tokens: int) -> float:
    """Of the products, forward and backward: six maps of the input and five of the hidden state in each layer."""
    of_layers = 6 * hidden * (width + (n_layers - 1) * hidden) + 5 * hidden**2 * n_layers
    return 3 * 2 * of_layers * n_tokens / 1e9


def print_alternating_lstm() -> None:
    for n_texts, n_tokens, width, hidden, n_layers in ((80, 30, 200, 300, 8), (80, 25, 100, 100, 4)):
        ours = AlternatingLSTM(width, hidden, n_layers, dropout=0.0)
        plain = PlainAlternatingLSTM(ours)
        x = torch.randn(n_texts, n_tokens, width, requires_grad=True)
        for name, lengths in (
            ("one length", torch.full((n_texts,), n_tokens)),
            ("ragged", torch.linspace(n_tokens // 2, n_tokens, n_texts).long()),
        ):
            mask = torch.arange(n_tokens) < lengths.unsqueeze(1)
            times = best_ms(partial(forward_and_backward, ours, x, mask), partial(forward_and_backward, plain, x, mask))
            difference = difference_of(ours, plain, x, mask)
            line(f"LSTM {n_layers} x {hidden}, {n_texts} x {n_tokens}, {name}", *times, difference, int(lengths.sum()))
            print_share_of_products(*times, gflop_of_alternating_lstm(width, hidden, n_layers, int(lengths.sum())))


def print_gru() -> None:
    for n_texts, n_tokens, width, hidden in ((45, 150, 400, 45), (45, 150, 356, 90), (45, 400, 180, 90)):
        gru, x = BiGRU(width, hidden), torch.randn(n_texts, n_tokens, width, requires_grad=True)
        lengths = torch.linspace(n_tokens, n_tokens * 3 // 4, n_texts).long()
        mask = torch.arange(n_tokens) < lengths.unsqueeze(1)

        def plain(gru: BiGRU = gru, x: Tensor = x, lengths: Tensor = lengths) -> Tensor:
            return gru.gru(pack_padded_sequence(x, lengths, batch_first=True))[0].data  # type: ignore[no-any-return]

        def ours(gru: BiGRU = gru, x: Tensor = x, mask: Tensor = mask) -> Tensor:
            return gru(x, mask)  # type: ignore[no-any-return]

        times = best_ms(lambda f=ours: f().sum().backward(), lambda f=plain: f().sum().backward())
        packed = pack_padded_sequence(ours(), lengths, batch_first=True).data
        difference = float((packed - plain()).abs().max().detach())
        line(f"BiGRU {width} to {hidden}, {n_texts} x {n_tokens}", *times, difference, int(lengths.sum()))


def print_crf() -> None:
    n_texts, n_tokens, n_tags = 32, 50, 9
    anything = torch.ones(n_tags, dtype=torch.bool)
    ours, plain = CRF(anything.expand(n_tags, n_tags), anything, anything), torchcrf.CRF(n_tags, batch_first=True)
    for name, other in (("transitions", "transitions"), ("start", "start_transitions"), ("end", "end_transitions")):
        getattr(plain, other).data.copy_(getattr(ours, name).data)
    x = torch.randn(n_texts, n_tokens, n_tags, requires_grad=True)
    tags, mask = torch.randint(n_tags, (n_texts, n_tokens)), torch.ones(n_texts, n_tokens, dtype=torch.bool)
    size, total = f"{n_texts} x {n_tokens} x {n_tags}", n_texts * n_tokens
    times = best_ms(lambda: ours.loss(x, tags, mask).sum().backward(), lambda: (-plain(x, tags, mask)).backward())
    difference = float((ours.loss(x, tags, mask).sum() + plain(x, tags, mask)).abs().detach())
    line(f"CRF loss, {size}", *times, difference, total)
    times = best_ms(lambda: ours.decode(x, mask), lambda: plain.decode(x, mask))
    line(f"CRF Viterbi, {size}", *times, float(ours.decode(x, mask) != plain.decode(x, mask)), total)


def main() -> None:
    keep_large_blocks()
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; forward and backward")
    print(f"{'':34}{'ours ms':>9}{'plain ms':>9}{'ratio':>8}{'tokens/s':>10}{'plain':>10}{'difference':>12}")
    print_alternating_lstm()
    print_gru()
    print_crf()


if __name__ == "__main__":
    main()
