"""SRL's LSTM against a plain loop over modules: ``python benchmarks/alternating_lstm.py [TEXT]``.

Both have the same weights. They are timed alternately in one process, and the best of several turns counts. First come
batches of one length and of several lengths, then TEXT, one tokenised sentence a line (default: the bundled sample of
the task). The plain loop takes its sentences in file order, 80 a batch, and computes all padding; ours takes 80
sentences of similar length, as the task does. Set OMP_NUM_THREADS to the number of cores.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from machine import ceiling
from pairs import best_ms, line, print_head
from torch import Tensor, nn

from elmo_tasks.data.conll2012 import read_documents
from elmo_tasks.data.corpus import read_sentences
from elmo_tasks.nn.highway_lstm import AlternatingLSTM, HighwayLSTM
from elmo_tasks.training.memory import keep_freed_memory

SAMPLE = Path(__file__).parents[1] / "elmo_tasks" / "bundled" / "sample" / "srl" / "train.conll"
N_TEXTS, N_BATCHES = 80, 8


def forward_and_backward(model: nn.Module, x: Tensor, mask: Tensor) -> None:
    model(x, mask).sum().backward()


class PlainCell(nn.Module):
    """One step of a :class:`HighwayLSTM`, as it is usually written."""

    def __init__(self, layer: HighwayLSTM) -> None:
        super().__init__()
        n_cells, width = layer.highway.shape
        self.input_map, self.hidden_map = nn.Linear(width, 6 * n_cells, bias=False), nn.Linear(n_cells, 5 * n_cells)
        self.input_map.weight.data = torch.cat([layer.input_weight, layer.highway]).detach()
        self.hidden_map.weight.data, self.hidden_map.bias.data = layer.hidden_weight.detach(), layer.bias.detach()

    def forward(self, word: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        i, f, o, r, g, highway = self.input_map(word).chunk(6, dim=1)
        h_i, h_f, h_o, h_r, h_g = self.hidden_map(hidden).chunk(5, dim=1)
        cell = torch.sigmoid(i + h_i) * torch.tanh(g + h_g) + torch.sigmoid(f + h_f) * cell
        gate = torch.sigmoid(r + h_r)
        return gate * torch.sigmoid(o + h_o) * torch.tanh(cell) + (1 - gate) * highway, cell


class PlainAlternatingLSTM(nn.Module):
    """The layers of an :class:`AlternatingLSTM`, a step at a time: a loop over modules."""

    def __init__(self, ours: AlternatingLSTM) -> None:
        super().__init__()
        self.cells = nn.ModuleList(PlainCell(layer) for layer in ours.layers)  # type: ignore[arg-type]

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        n_texts, n_tokens, _ = x.shape
        for k, layer in enumerate(self.cells):
            hidden = cell = x.new_zeros(n_texts, layer.hidden_map.in_features)  # type: ignore[union-attr, arg-type]
            outputs = [hidden] * n_tokens
            for t in reversed(range(n_tokens)) if k % 2 else range(n_tokens):
                real = mask[:, t : t + 1]
                hidden, cell = (torch.where(real, part, 0.0) for part in layer(x[:, t], hidden, cell))
                outputs[t] = hidden
            x = torch.stack(outputs, dim=1)
        return x


def largest_difference(ours: nn.Module, plain: nn.Module, x: Tensor, mask: Tensor) -> float:
    """The largest difference of an output, or of the gradient of the outputs' sum with respect to an input."""
    out, expected = ours(x, mask), plain(x, mask)
    gradient, expected_gradient = (torch.autograd.grad(each.sum(), x)[0] for each in (out, expected))
    return max(float((out - expected).detach().abs().max()), float((gradient - expected_gradient).abs().max()))


def print_share_of_products(ours: float, plain: float, gflop: float) -> None:
    """The share of the time that the matrix products alone take: no exact computation can be faster."""
    best = ceiling()
    rate, alone = 1000 * gflop / ours, 1000 * gflop / best
    print(f"{'':8}{gflop:.0f} GFLOP, {rate:.0f} GFLOP/s: {rate / best:.0%} of the best products ({best:.0f})", end="; ")
    print(f"nothing but products: {alone:.0f} ms, {plain / alone:.2f} times", flush=True)


def alternating_lstm_gflop(width: int, hidden: int, n_layers: int, n_tokens: int) -> float:
    """GFLOP of forward and backward pass: a layer maps its input to six vectors and its hidden state to five."""
    n_products = 6 * hidden * (width + (n_layers - 1) * hidden) + 5 * hidden**2 * n_layers
    return 3 * 2 * n_products * n_tokens / 1e9


def print_batches() -> None:
    for n_tokens, width, hidden, n_layers in ((30, 200, 300, 8), (25, 100, 100, 4)):
        ours = AlternatingLSTM(width, hidden, n_layers, dropout=0.0)
        plain = PlainAlternatingLSTM(ours)
        x = torch.randn(N_TEXTS, n_tokens, width, requires_grad=True)
        for name, lengths in (
            ("one length", torch.full((N_TEXTS,), n_tokens)),
            ("ragged", torch.linspace(n_tokens // 2, n_tokens, N_TEXTS).long()),
        ):
            mask = torch.arange(n_tokens) < lengths.unsqueeze(1)
            times = best_ms(partial(forward_and_backward, ours, x, mask), partial(forward_and_backward, plain, x, mask))
            difference = largest_difference(ours, plain, x, mask)
            line(f"LSTM {n_layers} x {hidden}, {N_TEXTS} x {n_tokens}, {name}", *times, difference, int(lengths.sum()))
            print_share_of_products(*times, alternating_lstm_gflop(width, hidden, n_layers, int(lengths.sum())))


def padded(sentences: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """A batch ``[B, T, E]`` that requires its gradient, and its mask."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    x = nn.utils.rnn.pad_sequence(list(sentences), batch_first=True).requires_grad_()
    return x, torch.arange(int(lengths.max())) < lengths.unsqueeze(1)


def print_text(lengths: Sequence[int], width: int, hidden: int, n_layers: int) -> None:
    ours = AlternatingLSTM(width, hidden, n_layers, dropout=0.0)
    plain = PlainAlternatingLSTM(ours)
    sentences = [torch.randn(n, width) for n in lengths]
    orders = sorted(range(len(lengths)), key=lengths.__getitem__), range(len(lengths))
    of_similar_length, in_file_order = (
        [padded([sentences[k] for k in order[start : start + N_TEXTS]]) for start in range(0, len(order), N_TEXTS)]
        for order in orders
    )

    def all_batches(model: nn.Module, batches: Sequence[tuple[Tensor, Tensor]]) -> None:
        for batch in batches:
            forward_and_backward(model, *batch)

    times = best_ms(partial(all_batches, ours, of_similar_length), partial(all_batches, plain, in_file_order))
    difference = max(largest_difference(ours, plain, *batch) for batch in in_file_order)
    line(f"LSTM {n_layers} x {hidden}, {len(lengths)} sentences of a text", *times, difference, sum(lengths))
    n_steps = sum(mask.numel() for _, mask in in_file_order)
    print(f"{'':8}{n_steps / sum(lengths):.2f} positions a token in file order", flush=True)


def read_lengths(path: Path) -> list[int]:
    """Tokens of the first sentences of a text, one a line, or of a CoNLL-2012 file."""
    if path.suffix == ".conll":
        sentences = (sentence.tokens for document in read_documents(path) for sentence in document.sentences)
    else:
        sentences = read_sentences(path)
    return list(map(len, islice(sentences, N_TEXTS * N_BATCHES)))


def main(arguments: list[str]) -> None:
    keep_freed_memory()
    torch.manual_seed(0)
    print_head()
    print_batches()
    lengths = read_lengths(Path(arguments[0]) if arguments else SAMPLE)
    print_text(lengths, 200, 300, 8)
    print_text(lengths, 100, 100, 4)


if __name__ == "__main__":
    main(sys.argv[1:])
