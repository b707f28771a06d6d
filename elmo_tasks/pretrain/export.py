"""A trained biLM as files: what a training writes, and what another run can start from.

The published layout (``options.json``, ``weights.hdf5``) has no softmax. A run writes its own beside it, with the words
that it predicts; training can also start from a folder without them, with a new softmax.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.bilm.grow import can_grow, grown
from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.options import BiLMOptions, differing
from elmo_tasks.data.corpus import LmVocabulary
from elmo_tasks.errors import UserError
from elmo_tasks.files import OTHER_FOLDER, write_text
from elmo_tasks.places import bundled_folder
from elmo_tasks.pretrain.model import LanguageModel
from elmo_tasks.tensors import check_weights, read_tensors, write_tensors

SOFTMAX = "softmax.safetensors"
VOCABULARY = "vocabulary.txt"
_PARTS = ("softmax_weight", "softmax_bias")


@dataclass(frozen=True)
class InitialWeights:
    """Weights to start from.

    Attributes:
        weights: of a :class:`LanguageModel`, without a softmax if ``vocabulary`` is None.
        vocabulary: the words that the softmax predicts.
        grown: the sizes from which and to which the weights have grown; empty if these are the same.
    """

    weights: dict[str, Tensor]
    vocabulary: LmVocabulary | None
    grown: str = ""

    @property
    def digest(self) -> str:
        """Digest of weights and words."""
        sha = hashlib.sha256("\n".join(self.vocabulary.words if self.vocabulary else []).encode())
        for name, value in sorted(self.weights.items()):
            sha.update(name.encode())
            sha.update(value.float().contiguous().numpy().tobytes())
        return sha.hexdigest()[:16]

    def put_into(self, model: LanguageModel) -> None:
        """Load the weights; a softmax that they lack stays as it is."""
        new = {name: value for name, value in model.state_dict().items() if name in _PARTS}
        model.load_state_dict(new | self.weights)


def read_initial_weights(where: str, options: BiLMOptions) -> InitialWeights:
    """What ``task.lm.init`` names; weights in a folder can also grow to more cells and filters (``bilm/grow.py``).

    Args:
        where: ``mini`` or another bundled one, a folder with ``options.json`` and ``weights.hdf5`` (and, if a run
            made it, its softmax), or the ``model.safetensors`` in the folder of a run.
        options: the sizes to train.

    Raises:
        UserError: if files are missing or damaged, or do not have these sizes and cannot grow to them.
    """
    if where.endswith(".safetensors"):
        path = Path(where)
        return _checked(read_tensors(path), path, path.parent / "bilm" / VOCABULARY, options)
    try:
        bilm = BiLM.load(where)
    except UserError as error:
        raise UserError(str(error).replace("bilm.path=", "task.lm.init=")) from error
    theirs, ours = differing(bilm.options, options)
    if not can_grow(bilm.options, options):
        raise UserError(
            f"task.lm.init={where} has other sizes than those to train; to train its own, add "
            f"{_overrides(bilm.options, options)} (the numbers of cells and filters may also be larger)"
        )
    weights = {f"bilm.{name}": value for name, value in grown(bilm, options).items()}
    folder = bundled_folder(where) or Path(where)
    softmax = folder / SOFTMAX
    sizes = f"from {theirs} to {ours}" if ours else ""
    if not softmax.exists():
        return InitialWeights(weights, None, sizes)
    return replace(_checked(weights | read_tensors(softmax), softmax, folder / VOCABULARY, options), grown=sizes)


def _overrides(wanted: BiLMOptions, others: BiLMOptions) -> str:
    """What turns other sizes into those that are wanted, as on the command line."""
    before = dict(_flat(others.to_json()))
    changed = {key: value for key, value in _flat(wanted.to_json()) if value != before[key]}
    texts = (f"bilm.options.{key}={json.dumps(value, separators=(',', ':'))}" for key, value in changed.items())
    return " ".join(map(shlex.quote, texts))


def _flat(section: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values at any depth, with their dotted keys."""
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _checked(weights: dict[str, Tensor], path: Path, words: Path, options: BiLMOptions) -> InitialWeights:
    if not words.exists():
        raise UserError(f"{words}: no such file; {path.name} cannot be used without the vocabulary of its softmax")
    vocabulary = LmVocabulary.read(words)
    with torch.device("meta"):
        expected = scoring_model(options, vocabulary)
    check_weights(expected, weights, path)
    return InitialWeights(weights, vocabulary)


def scoring_model(options: BiLMOptions, vocabulary: LmVocabulary) -> LanguageModel:
    """A model of these sizes that is not to be trained, so that dropout and the number of candidates do not matter."""
    return LanguageModel(bilm=BiLM(options), vocabulary_size=len(vocabulary), n_samples=1, dropout=0.0)


def write_vocabulary(vocabulary: LmVocabulary, folder: Path) -> None:
    """Write the words, one a line; without them the weights of a run cannot be used."""
    write_text(folder / VOCABULARY, "\n".join(vocabulary.words) + "\n", OTHER_FOLDER)


def write_bilm(model: LanguageModel, folder: Path) -> str:
    """Write a trained biLM in the published layout and its softmax, all as float16.

    Returns:
        the digest of the biLM that a task reads from ``folder``.
    """
    model.bilm.save(folder, dtype="float16")
    parts = {name: model.get_parameter(name).detach().cpu().half() for name in _PARTS}
    write_tensors(folder / SOFTMAX, parts, "the softmax")
    return BiLM.load(folder).digest


def load(folder: str) -> tuple[LanguageModel, LmVocabulary]:
    """A trained model with its softmax: a bundled one, or a folder that a training wrote.

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
