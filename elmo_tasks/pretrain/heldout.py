"""Perplexity of a biLM on held-out text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch.nn import functional as F

from elmo_tasks.bilm.lstm import State
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.nn.characters import MAX_CHARACTERS
from elmo_tasks.pretrain.inputs import WordTable
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.pretrain.pack_files import Ids
from elmo_tasks.pretrain.windows import PackedWindow
from elmo_tasks.training.memory import HeapTrimmer


@torch.no_grad()
def score_heldout(
    model: LanguageModel,
    words: WordTable,
    target_ids: Ids,
    windows: Iterable[PackedWindow],
    bfloat16: bool = False,
) -> Perplexity:
    """The scores of a text, with the full softmax and the state carried; the model stays in its mode.

    Args:
        model: on any device.
        words: of the pack that the windows are of.
        target_ids: int32 ``[W]``, the softmax's id of each of these words.
        windows: in order.
        bfloat16: whether products are in bfloat16.
    """
    found = Perplexity()
    device, training = model.softmax_bias.device, model.training
    states: list[State] | None = None
    model.eval()
    for window in HeapTrimmer().between(windows):
        distinct, places = np.unique(window.inputs, return_inverse=True)
        width = min(MAX_CHARACTERS, int(words.lengths[distinct].max()) + model.bilm.encoder.max_width)
        rows, targets = (
            torch.from_numpy(ids.astype(np.int64)).to(device) for ids in (places, target_ids[window.targets])
        )
        with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
            table = model.bilm.encoder(words.char_ids[torch.from_numpy(distinct).long(), :width].long().to(device))
            x = F.embedding(rows.view(window.inputs.shape), table.to(model.softmax_weight.dtype))
            hidden, states = model.read(x, states or model.bilm.initial_states(x.shape[2]))
            losses = model.losses(hidden, targets, torch.from_numpy(window.valid).to(device))
        found.update(losses.cpu(), None)
    model.train(training)
    return found
