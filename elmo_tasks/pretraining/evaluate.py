"""Perplexity of a biLM on a pack's held-out text, and the files of a trained one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.sizes import SIZES
from elmo_tasks.data.corpus import LmVocabulary
from elmo_tasks.data.windows import LmBatch
from elmo_tasks.errors import UserError, quoted
from elmo_tasks.metrics.perplexity import Perplexity
from elmo_tasks.models.lm import LanguageModel
from elmo_tasks.pretraining.pack import Pack
from elmo_tasks.pretraining.state import INDEX, load_state
from elmo_tasks.pretraining.step import view_as_parameters
from elmo_tasks.pretraining.windows import heldout_windows
from elmo_tasks.training.initial_weights import (
    VOCABULARY,
    read_initial_weights,
    scoring_model,
    write_bilm,
    write_vocabulary,
)
from elmo_tasks.training.memory import HeapTrimmer

ROWS, STEPS = 128, 20


def heldout_batches(pack: Pack, vocabulary: LmVocabulary) -> Iterator[LmBatch]:
    """The held-out text once, as ``task=lm`` reads it at ``scale=cpu``."""
    target_ids = pack.targets(vocabulary)
    return (window.to_batch(pack, target_ids) for window in heldout_windows(pack, ROWS, STEPS))


@torch.no_grad()
def perplexity(model: LanguageModel, pack: Pack, vocabulary: LmVocabulary) -> dict[str, float]:
    """Scores of the whole held-out text, with the full softmax and the state carried; the model stays in its mode."""
    metric, training, device = Perplexity(), model.training, model.softmax_bias.device
    model.eval()
    for batch in HeapTrimmer().between(heldout_batches(pack, vocabulary)):
        moved = batch.to(device)
        metric.update(model.decode(model(moved), moved).cpu(), moved.gold)
    model.train(training)
    return metric.compute()


def export(model: LanguageModel, vocabulary: LmVocabulary, folder: Path) -> str:
    """Write ``options.json``, ``weights.hdf5``, ``softmax.safetensors`` (float16) and ``vocabulary.txt``.

    Returns:
        the digest of the biLM.
    """
    write_vocabulary(vocabulary, folder)
    return write_bilm(model, folder)


def export_state(out: Path, folder: Path) -> str:
    """Export the weights of the state in ``out``; returns the digest of the biLM.

    Raises:
        UserError: if the state or its vocabulary is missing or damaged.
    """
    tensors, about = load_state(out)
    vocabulary = LmVocabulary.read(out / "bilm" / VOCABULARY)
    size, weights = about["identity"].get("size"), tensors.get("weights", torch.empty(0))
    if not isinstance(size, str) or size not in SIZES:
        raise UserError(f"{out / INDEX}: size must be one of {', '.join(SIZES)}, found {quoted(size)}")
    model = scoring_model(SIZES[size], vocabulary)
    if weights.shape != (sum(p.numel() for p in model.parameters()),) or not weights.is_floating_point():
        raise UserError(f"{out}: the words in bilm/{VOCABULARY} are not those of the state's softmax")
    view_as_parameters(weights, model)
    return export(model, vocabulary, folder)


def load(folder: str) -> tuple[LanguageModel, LmVocabulary]:
    """A trained model with its softmax: a bundled one, or a folder that :func:`export` or ``task=lm`` wrote.

    Raises:
        UserError: if files are missing or damaged.
    """
    options = BiLM.load(folder).options
    start = read_initial_weights(folder, options)
    if start.vocabulary is None:
        raise UserError(f"{folder}: the biLM comes without its softmax, so that it has no perplexity")
    model = scoring_model(options, start.vocabulary)
    start.put_into(model)
    return model.eval(), start.vocabulary
