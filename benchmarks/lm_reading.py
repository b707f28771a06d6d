"""How well biLMs predict when they carry their state, and when they start each sentence from zeros, as tasks do.

``python benchmarks/lm_reading.py TEXT BILM [BILM ...]``

TEXT is a held-out text, one tokenised sentence a line; BILM the name of a bundled biLM or a folder with its softmax. Of
each biLM are printed two perplexities of its first 2,000 sentences: with the state carried from sentence to sentence,
and with a zero state for each. Both count the same predictions: of each word from its left context and from its right
one, within the sentence, over the words of the softmax. A low ``task.model.forget`` shows as a second one that is high.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn import functional as F

from elmo_tasks.data.corpus import LmVocabulary, read_sentences
from elmo_tasks.errors import UserError
from elmo_tasks.pretrain.export import load
from elmo_tasks.pretrain.model import LanguageModel

N_SENTENCES, N_ROWS = 2000, 40


def perplexity(model: LanguageModel, vocabulary: LmVocabulary, sentences: list[list[str]], state: str) -> float:
    """Of both directions together.

    Args:
        sentences: a text in order; each row of the biLM reads a part of it, so that a carried state goes on.
        state: ``carry`` or ``reset``.
    """
    total, n = 0.0, 0
    model.bilm.reset_carried_state()
    n_each = len(sentences) // N_ROWS
    parts = [sentences[k * n_each : (k + 1) * n_each] for k in range(N_ROWS)]
    for batch in zip(*parts, strict=True):
        for sentence, layers in zip(batch, model.bilm.layers(batch, state), strict=True):
            for loss in losses(model, torch.tensor([vocabulary[word] for word in sentence]), layers[-1]):
                total, n = total + loss.sum().item(), n + len(loss)
    return math.exp(total / n)


def losses(model: LanguageModel, words: torch.Tensor, top: torch.Tensor) -> Iterator[torch.Tensor]:
    """Negative log-likelihoods of a sentence's words but the first, forward, and but the last, backward.

    Args:
        words: long ``[T]``, the softmax's ids.
        top: float ``[T, D]``, the top layer.
    """
    forward, backward = top.chunk(2, dim=1)
    for hidden, targets in ((forward[:-1], words[1:]), (backward[1:], words[:-1])):
        yield F.cross_entropy(F.linear(hidden, model.softmax_weight, model.softmax_bias), targets, reduction="none")


@torch.no_grad()
def main(text: Path, bilms: list[str]) -> None:
    sentences = list(itertools.islice(read_sentences(text), N_SENTENCES))
    print(f"{text.name}: {len(sentences):,} sentences, {sum(map(len, sentences)):,} words")
    print(f"{'biLM':<44} {'carried':>8} {'zeros':>8}")
    for bilm in bilms:
        model, vocabulary = load(bilm)
        carried, zeros = (perplexity(model, vocabulary, sentences, state) for state in ("carry", "reset"))
        print(f"{bilm:<44} {carried:8.1f} {zeros:8.1f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"{__doc__}\nexpected TEXT and one or more biLMs")
    try:
        main(Path(sys.argv[1]), sys.argv[2:])
    except UserError as error:
        sys.exit(str(error))
