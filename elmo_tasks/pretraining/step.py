"""One update of a biLM without synchronising with the host: loss, gradients, clipping and Adam run on the device.

All weights are views of one vector, and so are their gradients and Adam's moments: the optimizer is a few operations,
a state is a few tensors, and the changes of warm-up updates are undone by copying them back. On a GPU an update is
captured once as a CUDA graph and then replayed; on a CPU the same code runs directly.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.nn.gather import gather_rows
from elmo_tasks.pretraining.inputs import LENGTHS, Layout

_WARM_UP_UPDATES = 3  # before a graph is captured: libraries choose their algorithms and allocate then
_BETAS, _EPS = (0.9, 0.999), 1e-8


class TrainingStep:
    """A model in training, with its optimizer and the state that its rows carry.

    Args:
        model: in training mode, on the device; its parameters become views of :attr:`weights`.
        char_ids: int16 ``[W, 50]`` of all words that may come, on the device.
        n_rows: rows B of a window.
        n_steps: steps S of a window.
        grad_norm: bound of the gradient's norm.
        bfloat16: whether products are in bfloat16.

    Attributes:
        weights: float ``[n]``, all parameters.
        moments: float ``[2, n]``, Adam's averages of gradients and of their squares.
        gradient: float ``[n]``, of the last update.
        sums: float ``[3]``, over the updates since they were last set to zero: the mean losses of a position, the
            gradient norms, and the number of updates.
        carried: the state that each row carries, by LSTM layer.
        updates: number of updates so far.
    """

    def __init__(
        self, model: LanguageModel, char_ids: Tensor, n_rows: int, n_steps: int, grad_norm: float, bfloat16: bool
    ) -> None:
        self.model, self.char_ids, self.bfloat16, self.grad_norm = model, char_ids, bfloat16, grad_norm
        self.window = (2, n_steps, n_rows)
        self.parameters = list(model.parameters())
        self.weights = torch.cat([p.detach().flatten() for p in self.parameters])
        self.moments = self.weights.new_zeros(2, len(self.weights))
        self.gradient = torch.zeros_like(self.weights)
        self.sums = self.weights.new_zeros(3)
        view_as_parameters(self.weights, model)
        self.carried = model.bilm.initial_states(n_rows)
        self.updates = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._graph_layout: Layout | None = None

    @property
    def device(self) -> torch.device:
        return self.weights.device

    def run(self, layout: Layout, numbers: Tensor, learning_rate: float) -> None:
        """Do an update, by the captured graph if the layout is the graph's.

        Args:
            layout: of ``numbers``.
            numbers: int32 ``[n]`` on the CPU, from :meth:`~elmo_tasks.pretraining.inputs.Inputs.make`.
            learning_rate: of this update.
        """
        self.updates += 1
        unbiased = [1 - beta**self.updates for beta in _BETAS]
        factors = torch.tensor([learning_rate / unbiased[0], unbiased[1] ** -0.5])
        numbers[-2:] = factors.view(torch.int32)
        if self._graph is not None and layout == self._graph_layout:
            self._numbers.copy_(numbers, non_blocking=True)
            self._graph.replay()
        else:
            self._update(layout, numbers.to(self.device, non_blocking=True))

    def capture(self, layout: Layout, numbers: Tensor) -> None:
        """Capture the graph of an update; weights, moments, carried state and random numbers stay as they are."""
        before, rng = [part.clone() for part in self._changing()], torch.cuda.get_rng_state(self.device)
        self._numbers, self._graph_layout = numbers.to(self.device), layout
        stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_UPDATES):
                self._update(layout, self._numbers)
        torch.cuda.current_stream(self.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._update(layout, self._numbers)
        self._graph = graph
        for part, value in zip(self._changing(), before, strict=True):
            part.copy_(value)
        torch.cuda.set_rng_state(rng, self.device)

    def gradients(self, layout: Layout, numbers: Tensor) -> Tensor:
        """Fill :attr:`gradient`, update :attr:`carried`, and return the mean loss of a position, float ``[]``."""
        words, targets, samples, distinct, tries, _ = layout.split(numbers)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16, cache_enabled=False):
            x = gather_rows(self._word_vectors(distinct, layout.group_sizes), words.long().view(self.window))
            out, finals = self.model.read(x, self.carried)
            targets, samples = targets.long().view(self.window), samples.long()
            loss = self.model.sampled_loss(out.hidden, targets, samples, tries.view(torch.float32).double())
        gradients = torch.autograd.grad(loss, self.parameters)
        torch.cat([g.flatten() for g in gradients], out=self.gradient)
        for state, final in zip(self.carried, finals, strict=True):
            for part, value in zip(state, final, strict=True):
                part.copy_(value)
        return loss.detach() / self.window[1]

    def _update(self, layout: Layout, numbers: Tensor) -> None:
        loss = self.gradients(layout, numbers)
        norm = self.gradient.norm()
        self.gradient.mul_((self.grad_norm / (norm + 1e-6)).clamp(max=1.0))
        step_size, root = numbers[-2:].view(torch.float32)
        mean, square = self.moments
        mean.lerp_(self.gradient, 1 - _BETAS[0])
        square.mul_(_BETAS[1]).addcmul_(self.gradient, self.gradient, value=1 - _BETAS[1])
        self.weights.sub_(mean / (square.sqrt().mul_(root).add_(_EPS)) * step_size)
        self.sums.add_(torch.stack([loss, norm, torch.ones_like(norm)]))

    def _word_vectors(self, distinct: Tensor, group_sizes: Sequence[int]) -> Tensor:
        """The token layer of a window's distinct words, float ``[W, P]``; a group of words has one width."""
        encoder, groups = self.model.bilm.encoder, zip(torch.split(distinct, list(group_sizes)), LENGTHS, strict=True)
        features = [
            encoder.convolve(self.char_ids.index_select(0, ids)[:, : length + encoder.max_width].long())
            for ids, length in groups
            if len(ids)
        ]
        return encoder.combine(torch.cat(features)).to(self.weights.dtype)  # its gradient sums over many rows

    def _changing(self) -> list[Tensor]:
        return [self.weights, self.moments, self.sums, *(part for state in self.carried for part in state)]


def view_as_parameters(weights: Tensor, model: nn.Module) -> None:
    """Make a model's parameters views of one vector ``[n]``, in their order."""
    parameters = list(model.parameters())
    for parameter, view in zip(parameters, torch.split(weights, [p.numel() for p in parameters]), strict=True):
        parameter.data = view.view_as(parameter)
