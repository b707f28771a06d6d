"""The earlier training step of a biLM, which computes the same loss: ``benchmarks/lm.py`` compares the two."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from elmo_tasks.bilm.lstm import ProjectedLSTM
from elmo_tasks.bilm.token_encoder import TokenEncoder
from elmo_tasks.nn.characters import character_id_table
from elmo_tasks.nn.linear import linear, product, product_and_sum_with, products_with
from elmo_tasks.pretrain.inputs import EVERY_WORD
from elmo_tasks.pretrain.model import LanguageModel, log_expected_count
from elmo_tasks.pretrain.text import LmData
from elmo_tasks.pretrain.windows import PackedWindow

_CHUNK_FLOATS = 8_000_000


@dataclass
class LmBatch:
    """A window of S steps over B rows.

    Attributes:
        char_ids: long ``[W, C]``, the characters of the window's distinct words.
        words: long ``[2, S, B]``, rows of ``char_ids``, by reading direction.
        targets: long ``[2, S, B]``, the vocabulary id of the word to predict.
    """

    char_ids: Tensor
    words: Tensor
    targets: Tensor

    @classmethod
    def of(cls, window: PackedWindow, data: LmData) -> LmBatch:
        """A packed window of a text."""
        distinct, rows = np.unique(window.inputs, return_inverse=True)
        return cls(
            character_id_table([data.pack.words[k] for k in distinct], extra=7),
            torch.from_numpy(rows.reshape(window.inputs.shape).astype(np.int64)),
            torch.from_numpy(data.target_ids[window.targets].astype(np.int64)),
        )


def log_uniform_sample(n: int, vocabulary_size: int) -> tuple[Tensor, int]:
    """Draw word ids log-uniformly until ``n`` are distinct; low ids, the frequent words, are more probable.

    Returns:
        long ``[n]``, and the number of draws.
    """
    if n == vocabulary_size:  # the last rare words would take millions of draws
        return torch.arange(n), EVERY_WORD
    drawn = torch.empty(0, dtype=torch.long)
    while True:
        more = (torch.rand(4 * n, dtype=torch.float64) * math.log(vocabulary_size + 1)).exp().long() - 1
        drawn = torch.cat([drawn, more.clamp_(0, vocabulary_size - 1)])
        distinct, inverse = torch.unique(drawn, return_inverse=True)
        if len(distinct) >= n:
            break
    first = torch.full((len(distinct),), len(drawn)).scatter_reduce(0, inverse, torch.arange(len(drawn)), "amin")
    first_draws = first.sort().values[:n]
    return drawn[first_draws], int(first_draws[-1]) + 1


class PlainLanguageModel(LanguageModel):
    """Autograd through everything but the recurrence; all logits at once; each chunk of words through all layers."""

    carried: Any = None
    candidates: tuple[Tensor, float] | None = None  # None draws them

    def forward(self, batch: LmBatch) -> Tensor:
        _, n_steps, n_rows = batch.words.shape
        x = F.embedding(batch.words.flatten(1), plain_encoder(self.bilm.encoder, batch.char_ids))
        states = self.carried or self.bilm.initial_states(n_rows)
        finals = []
        for k, (lstm, state) in enumerate(zip(self.bilm.lstms, states, strict=True)):
            out, final = plain_layer(lstm, F.dropout(x, self.dropout), [n_rows] * n_steps, state)
            x = out + x if self.bilm.options.skip_connections and k > 0 else out
            finals.append((final[0].detach(), final[1].detach()))
        self.carried = finals
        return F.dropout(x, self.dropout).view(2, n_steps, n_rows, -1)

    def loss(self, out: Tensor, batch: LmBatch) -> Tensor:
        hidden, targets = out.flatten(0, 2), batch.targets.flatten()
        samples, tries = self.candidates or log_uniform_sample(self.n_samples, len(self.softmax_bias))
        candidates = torch.cat([samples, targets])
        weight = F.embedding(candidates, self.softmax_weight).to(hidden.dtype)
        correction = log_expected_count(candidates, tries, len(self.softmax_bias))
        bias = F.embedding(candidates, self.softmax_bias.unsqueeze(1)).squeeze(1) - correction
        n = len(samples)
        sample_scores = linear(hidden, weight[:n]).float() + bias[:n]
        target_scores = (hidden * weight[n:]).float().sum(dim=1) + bias[n:]
        place = samples.new_full((len(self.softmax_bias),), -1)
        place[samples] = torch.arange(n)
        hits = place[targets]
        rows = (hits >= 0).nonzero().squeeze(1)
        sample_scores = sample_scores.index_put((rows, hits[rows]), sample_scores.new_tensor(-math.inf))
        total = torch.logaddexp(torch.logsumexp(sample_scores, dim=1), target_scores)
        return (total - target_scores).mean() * batch.words.shape[1]


def plain_encoder(encoder: TokenEncoder, char_ids: Tensor) -> Tensor:
    """Words of similar length go through all layers together, chunk by chunk."""
    lengths = (char_ids != 261).sum(dim=1)
    order = lengths.argsort()
    widths = (lengths[order] + encoder.max_width).clamp(max=char_ids.shape[1]).tolist()
    n_filters, vectors, start = encoder.kernel_bias.numel(), [], 0
    for stop in range(1, len(widths) + 1):
        if stop == len(widths) or (stop - start + 1) * widths[stop] * n_filters > _CHUNK_FLOATS:
            x = plain_convolution(encoder, char_ids[order[start:stop], : widths[stop - 1]])
            for highway in encoder.highways:
                x = highway(x)
            vectors.append(encoder.projection(x))
            start = stop
    return torch.cat(vectors)[order.argsort()]


def plain_convolution(encoder: TokenEncoder, char_ids: Tensor) -> Tensor:
    n_characters = char_ids.shape[1]
    windows = F.pad(char_ids, (0, encoder.max_width - 1)).unfold(1, encoder.max_width, 1)
    x = F.embedding(windows, encoder.characters).flatten(2)
    weight = torch.cat([F.pad(k, (0, 0, 0, x.shape[2] - k.shape[0])) for k in encoder.kernels], dim=1)
    groups = torch.split(linear(x, weight.t()), [count for _, count in encoder.filters], dim=2)
    maxima = [
        group[:, : n_characters - width + 1].amax(dim=1)
        for (width, _), group in zip(encoder.filters, groups, strict=True)
    ]
    return F.relu(torch.cat(maxima, dim=1) + encoder.kernel_bias)


def plain_layer(
    layer: ProjectedLSTM, x: Tensor, batch_sizes: Sequence[int], state: tuple[Tensor, Tensor]
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    if torch.is_autocast_enabled("cpu"):
        x = x.to(torch.get_autocast_dtype("cpu"))
    scale, shift = layer.bias.new_ones(4, layer.dim), layer.bias.new_zeros(4, layer.dim)
    scale[1], shift[2] = 2.0, 1.0
    bias = ((layer.bias + shift.flatten()) * scale.flatten()).to(x.dtype)
    weight = (layer.weight * scale.flatten()).to(x.dtype)
    w_projection = None if layer.w_projection is None else layer.w_projection.to(x.dtype)
    input_weight = weight[:, : layer.input_dim].transpose(1, 2)
    gates = torch.stack([linear(*each) for each in zip(x, input_weight, bias, strict=True)])
    w_hidden = weight[:, layer.input_dim :]
    clips = layer.cell_clip, layer.proj_clip
    out, hidden, cell = PlainRecurrence.apply(gates, w_hidden, w_projection, *state, list(batch_sizes), *clips)
    return out, (hidden, cell)


def products_and_sums_with(weights: Tensor) -> Callable[[Tensor, Tensor], Sequence[Tensor]]:
    left, right = (product_and_sum_with(weight) for weight in weights)
    return lambda h, x: (left(h[0], x[0]), right(h[1], x[1]))


class PlainRecurrence(torch.autograd.Function):
    """All steps of one layer; states and gates in 32 bits, the input's part of the gates in a product of its own."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,  # [2, N, 4H] input part of the pre-activations, bias included, j doubled
        w_hidden: Tensor,  # [2, P, 4H]
        w_projection: Tensor | None,  # [2, H, P]
        hidden: Tensor,  # [2, B, P]
        cell: Tensor,  # [2, B, H]
        batch_sizes: list[int],
        cell_clip: float,
        proj_clip: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        n_positions, dim = gates.shape[1], cell.shape[2]
        training = any(ctx.needs_input_grad)
        hidden, cell = hidden.to(gates.dtype, copy=True), cell.clone()
        out = gates.new_empty(2, n_positions, hidden.shape[2])
        if training:
            kept_gates = cell.new_empty(2, n_positions, 4 * dim)
            kept_cells = cell.new_empty(2, n_positions, dim)  # after clipping
            previous_cells = cell.new_empty(2, n_positions, dim)
            previous_hidden = torch.empty_like(out)
            kept_m = gates.new_empty(2, n_positions, dim)  # o * tanh(c), before the projection
        add_hidden = products_and_sums_with(w_hidden)
        project = None if w_projection is None else products_with(w_projection)
        start = 0
        for n in batch_sizes:
            now = slice(start, start + n)
            h, c = hidden[:, :n], cell[:, :n]
            act = kept_gates[:, now] if training else cell.new_empty(2, n, 4 * dim)
            for gate, total in zip(act, add_hidden(h, gates[:, now]), strict=True):
                torch.sigmoid(total.to(cell.dtype), out=gate)
            if training:
                previous_cells[:, now], previous_hidden[:, now] = c, h
            i, j, f, o = act.chunk(4, dim=2)
            c.mul_(f).add_((i * j).mul_(2).sub_(i)).clamp_(-cell_clip, cell_clip)
            m = ((c * 2).sigmoid_().mul_(2).sub_(1)).mul_(o).to(gates.dtype)
            h.copy_(project(m).clamp_(-proj_clip, proj_clip) if project else m)
            out[:, now] = h
            if training:
                kept_cells[:, now], kept_m[:, now] = c, m
            start += n
        if training:
            ctx.save_for_backward(
                w_hidden, w_projection, kept_gates, kept_cells, previous_cells, previous_hidden, kept_m, out
            )
            ctx.settings = batch_sizes, cell_clip, proj_clip
        hidden = hidden.to(cell.dtype)
        ctx.mark_non_differentiable(hidden, cell)
        return out, hidden, cell

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        w_hidden, w_projection, acts, cells, previous_cells, previous_hidden, kept_m, out = ctx.saved_tensors
        batch_sizes, cell_clip, proj_clip = ctx.settings
        dim, dtype = cells.shape[2], out.dtype
        to_hidden = products_with(w_hidden.transpose(1, 2))
        to_m = None if w_projection is None else products_with(w_projection.transpose(1, 2))
        d_gates = torch.empty_like(acts, dtype=dtype)
        clipped_out, clipped_cell = _clipped(out, proj_clip) if to_m else None, _clipped(cells, cell_clip)
        d_outputs = d_out.clone()
        d_hidden = out.new_zeros(2, batch_sizes[0], out.shape[2])
        d_cell = cells.new_zeros(2, batch_sizes[0], dim)
        stop = out.shape[1]
        for n in reversed(batch_sizes):
            now = slice(stop - n, stop)
            d_h, d_c, act = d_outputs[:, now], d_cell[:, :n], acts[:, now]
            i, j, f, o = act.chunk(4, dim=2)
            d_h.add_(d_hidden[:, :n])
            if clipped_out is not None:
                d_h.masked_fill_(clipped_out[:, now], 0)
            d_m = (to_m(d_h) if to_m else d_h).to(cells.dtype)
            tanh_c = (cells[:, now] * 2).sigmoid_().mul_(2).sub_(1)
            d_c.add_(torch.ops.aten.tanh_backward(d_m * o, tanh_c))
            if clipped_cell is not None:
                d_c.masked_fill_(clipped_cell[:, now], 0)
            d_act = torch.empty_like(act)
            d_i, d_j, d_f, d_o = d_act.chunk(4, dim=2)
            torch.mul(d_c, (j * 2).sub_(1), out=d_i)
            torch.mul(d_c, i, out=d_j).mul_(2)
            torch.mul(d_c, previous_cells[:, now], out=d_f)
            torch.mul(d_m, tanh_c, out=d_o)
            d_gate = torch.ops.aten.sigmoid_backward(d_act, act).to(dtype)
            d_gates[:, now] = d_gate
            d_c.mul_(f)
            d_hidden[:, :n] = to_hidden(d_gate)
            stop -= n
        d_w_hidden = torch.stack([product(h.t(), d) for h, d in zip(previous_hidden, d_gates, strict=True)])
        if to_m is None:
            return d_gates, d_w_hidden, None, None, None, None, None, None
        d_w_projection = torch.stack([product(m.t(), d) for m, d in zip(kept_m, d_outputs, strict=True)])
        return d_gates, d_w_hidden, d_w_projection, None, None, None, None, None


def _clipped(values: Tensor, bound: float) -> Tensor | None:
    """Where a clipped tensor lies on its bound and lets no gradient through; None if it does nowhere."""
    clipped = values.abs() >= bound
    return clipped if bool(clipped.any()) else None
