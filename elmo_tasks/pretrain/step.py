"""One update of a biLM without synchronising with the host: loss, gradients, clipping and optimizer, on the device.

All weights are views of two vectors, that of the softmax and that of the biLM, and so are their gradients: the
optimizer is a few operations, and a state is a few tensors. On a GPU the gradient is captured once as a CUDA graph and
then replayed; on a CPU the same code runs directly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from elmo_tasks.nn.gather import gather_rows
from elmo_tasks.pretrain.inputs import LENGTHS, Layout
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.team import Team

OptimizerFactory = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]

_WARM_UP_UPDATES = 3  # before a graph is captured: libraries choose their algorithms and allocate then


class TrainingStep:
    """A model in training, with its optimizer and the state that its rows carry.

    Args:
        model: in training mode, on the device; its parameters become views of :attr:`vectors`.
        char_ids: int16 ``[W, 50]`` of all words that may come, on the device.
        window: ``(2, S, B)``, directions, steps and rows of a window.
        optimizer: makes the optimizer of the vectors; it must treat each number alike.
        grad_norm: bound of the gradient's norm; None for none.
        bfloat16: whether products are in bfloat16.
        team: the processes that share the rows.

    Attributes:
        vectors: float ``[n]``, the softmax and the biLM, each with its gradient.
        loss: float ``[]``, of the last update: the mean over the positions of all processes.
        norm: float ``[]``, of the last update's gradient, before it was clipped.
        carried: the state that each row carries, by LSTM layer.
        grouped: whether words go through the character CNN by the groups of their layout.
    """

    def __init__(
        self,
        model: LanguageModel,
        char_ids: Tensor,
        window: tuple[int, int, int],
        optimizer: OptimizerFactory,
        grad_norm: float | None,
        bfloat16: bool,
        team: Team = Team(),  # noqa: B008 (frozen)
    ) -> None:
        self.model, self.char_ids, self.window, self.bfloat16, self.team = model, char_ids, window, bfloat16, team
        self.max_norm = float("inf") if grad_norm is None else grad_norm
        self.parameters = [[model.softmax_weight, model.softmax_bias], list(model.bilm.parameters())]
        self.vectors = [as_one_vector(part) for part in self.parameters]
        self.gradients = [torch.zeros_like(vector) for vector in self.vectors]
        self.loss, self.norm = (self.vectors[0].new_zeros(()) for _ in range(2))
        self.carried = model.bilm.initial_states(window[2])
        self.grouped = char_ids.device.type != "cpu"  # where tensors have the same sizes in every update
        self.optimizer = optimizer(self.vectors)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._graph_layout: Layout | None = None

    @property
    def device(self) -> torch.device:
        return self.char_ids.device

    def run(self, layout: Layout, numbers: Tensor, *, with_bilm: bool = True) -> None:
        """Do an update; see :meth:`find_gradients` and :meth:`update`."""
        self.find_gradients(layout, numbers, with_bilm=with_bilm)
        self.update()

    def find_gradients(self, layout: Layout, numbers: Tensor, *, with_bilm: bool = True) -> None:
        """Find the clipped gradients, by the captured graph if the layout is the graph's.

        Args:
            layout: of ``numbers``.
            numbers: int32 ``[n]`` on the CPU, from :meth:`~elmo_tasks.pretrain.inputs.Inputs.make`.
            with_bilm: whether the biLM is trained too, or only the softmax.
        """
        if self._graph is not None and layout == self._graph_layout and with_bilm:
            self._numbers.copy_(numbers, non_blocking=True)
            self._graph.replay()
        else:
            self.backward(layout, numbers.to(self.device, non_blocking=True), with_bilm)
        for number, (vector, gradient) in enumerate(zip(self.vectors, self.gradients, strict=True)):
            vector.grad = gradient if with_bilm or number == 0 else None  # an optimizer skips what has none
        for part in (*self.gradients[: 2 if with_bilm else 1], self.loss):
            self.team.average_(part)
        self.norm = nn.utils.clip_grad_norm_(self.vectors, self.max_norm)

    def update(self) -> None:
        """Let the optimizer use the gradients."""
        self.optimizer.step()

    def capture(self, layout: Layout, numbers: Tensor) -> None:
        """Capture the graph of the gradient; weights, carried state and random numbers stay as they are."""
        carried = [part for state in self.carried for part in state]
        before, rng = [part.clone() for part in carried], torch.cuda.get_rng_state(self.device)
        self._numbers, self._graph_layout = numbers.to(self.device), layout
        stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP_UPDATES):
                self.backward(layout, self._numbers)
        torch.cuda.current_stream(self.device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.backward(layout, self._numbers)
        self._graph = graph
        for part, value in zip(carried, before, strict=True):
            part.copy_(value)
        torch.cuda.set_rng_state(rng, self.device)

    def backward(self, layout: Layout, numbers: Tensor, with_bilm: bool = True) -> None:
        """Fill :attr:`gradients` and :attr:`loss` from the rows of this process, and go on to the next state."""
        words, targets, samples, distinct, tries = layout.split(numbers)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16, cache_enabled=False):
            with torch.set_grad_enabled(with_bilm):
                x = gather_rows(self._word_vectors(distinct, layout.group_sizes), words.long().view(self.window))
                hidden, finals = self.model.read(x, self.carried)
            loss = self.model.sampled_loss(
                hidden, targets.long().view(self.window), samples.long(), tries.view(torch.float32).double()
            )
        trained = self.parameters if with_bilm else self.parameters[:1]
        found = iter(torch.autograd.grad(loss, [p for part in trained for p in part]))
        for parameters, gradient in zip(trained, self.gradients, strict=False):
            torch.cat([next(found).flatten() for _ in parameters], out=gradient)
        for state, final in zip(self.carried, finals, strict=True):
            for part, value in zip(state, final, strict=True):
                part.copy_(value)
        self.loss.copy_(loss.detach() / self.window[1])

    def _word_vectors(self, distinct: Tensor, group_sizes: Sequence[int]) -> Tensor:
        """The token layer of a window's distinct words, float ``[W, P]``; on a GPU a group of words has one width."""
        encoder, groups = self.model.bilm.encoder, zip(torch.split(distinct, list(group_sizes)), LENGTHS, strict=True)
        if not self.grouped:
            vectors: Tensor = encoder(self.char_ids.index_select(0, distinct).long())
            return vectors.to(self.loss.dtype)
        features = [
            encoder.convolve(self.char_ids.index_select(0, ids)[:, : length + encoder.max_width].long())
            for ids, length in groups
            if len(ids)
        ]
        return encoder.combine(torch.cat(features)).to(self.loss.dtype)  # its gradient sums over many rows


def as_one_vector(parameters: Sequence[nn.Parameter]) -> nn.Parameter:
    """Make parameters views of one vector ``[n]``, in their order."""
    vector = torch.cat([p.detach().flatten() for p in parameters])
    for parameter, view in zip(parameters, torch.split(vector, [p.numel() for p in parameters]), strict=True):
        parameter.data = view.view_as(parameter)
    return nn.Parameter(vector)
