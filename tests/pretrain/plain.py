"""The plain way: windows cut word by word, a model that reads one after the other, candidates drawn one by one."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import torch
from torch import Tensor
from torch.nn import functional as F

from elmo_tasks.nn.characters import BEGIN_SENTENCE, END_SENTENCE, character_id_table
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.windows import PackedWindow

Steps = list[tuple[str, str]]
"""The input word and the target word of some steps of a row, in one direction."""


@dataclass
class Window:
    """Words ``[2][S][B]`` by reading direction, and ``[S][B]`` whether they are text."""

    inputs: list[list[list[str]]]
    targets: list[list[list[str]]]
    valid: list[list[bool]]


def cut_text(sentences: Iterable[Sequence[str]], n_rows: int, n_steps: int) -> Iterator[Window]:
    """Windows until no sentence is left; each is appended to the first row with fewer than S words."""
    rows: list[tuple[Steps, Steps]] = [([], []) for _ in range(n_rows)]
    rest = iter(sentences)
    for _ in count():
        for row in rows:
            while len(row[0]) < n_steps and (sentence := next(rest, None)) is not None:
                words = [BEGIN_SENTENCE, *sentence, END_SENTENCE]
                row[0].extend(pairwise(words))
                row[1].extend(pairwise(words[::-1]))
        if not any(forward for forward, _ in rows):
            return
        cuts = [[row[direction][:n_steps] for row in rows] for direction in (0, 1)]
        for row in rows:
            for part in row:
                del part[:n_steps]
        filling = (END_SENTENCE, END_SENTENCE)
        padded = [[cut + [filling] * (n_steps - len(cut)) for cut in side] for side in cuts]
        inputs, targets = ([[[row[s][k] for row in side] for s in range(n_steps)] for side in padded] for k in (0, 1))
        yield Window(inputs, targets, [[s < len(cut) for cut in cuts[0]] for s in range(n_steps)])


def spell(window: PackedWindow, words: Sequence[str]) -> Window:
    """The words of a packed window."""
    ids = (window.inputs.tolist(), window.targets.tolist())
    inputs, targets = ([[[words[k] for k in row] for row in side] for side in part] for part in ids)
    return Window(inputs, targets, window.valid.tolist())


class Reader:
    """Reads windows with the state carried.

    Args:
        model: in any mode.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model, self.states = model, None

    def read(self, inputs: list[list[list[str]]]) -> Tensor:
        """The top layer of input words ``[2][S][B]``: ``[2, S, B, P]``."""
        flat = [word for side in inputs for row in side for word in row]
        shape = (2, len(inputs[0]), len(inputs[0][0]))
        table = self.model.bilm.encoder(character_id_table(flat, extra=7)).float()
        states = self.states or self.model.bilm.initial_states(shape[2])
        hidden, self.states = self.model.read(table.view(*shape, -1), states)
        return hidden


def sampled_loss(model: LanguageModel, hidden: Tensor, targets: Tensor, samples: Tensor, tries: float) -> Tensor:
    """The mean loss over positions, with each position's softmax over its own candidates, times the steps."""
    n_words = len(model.softmax_bias)
    ranks = torch.arange(n_words, dtype=torch.float64)
    share = ((ranks + 2) / (ranks + 1)).log() / math.log(n_words + 1)
    counts = -torch.expm1(tries * torch.log1p(-share))
    logits = hidden @ model.softmax_weight.t() + model.softmax_bias - counts.log().float()
    kept = torch.zeros(*targets.shape, n_words, dtype=torch.bool)
    kept[..., samples] = True
    kept.scatter_(-1, targets.unsqueeze(-1), True)
    losses = F.cross_entropy(logits.masked_fill(~kept, -math.inf).flatten(0, 2), targets.flatten())
    return losses * targets.shape[1]
