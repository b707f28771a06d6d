"""A finished run read back from its folder, without its training data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType
from typing import Any

import torch

from elmo_tasks.assembly import build_bilm, build_elmo, build_model, choose_device, make, read_weights
from elmo_tasks.config.compose import load
from elmo_tasks.config.schema import WordsConfig
from elmo_tasks.data.fitted import FittedData
from elmo_tasks.data.reader import Reader
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError, quoted, shortened
from elmo_tasks.files import check_object, read_json, read_object, sha256
from elmo_tasks.models.base import TaskModel
from elmo_tasks.nn.words import WordVectors
from elmo_tasks.runs.inputs import describe_bilm, words_digest
from elmo_tasks.runs.layout import CONFIG, FITTED, RUN, WEIGHTS, expect_finished_run
from elmo_tasks.tensors import check_shapes

_MAX_FITTED_BYTES = 1_000_000_000  # the vocabulary has no limit, and the file is the run's own
_SECTIONS = ("task", "bilm", "elmo", "trainer", "words")
_WORDS: dict[str, type | tuple[type, ...]] = {"name": str, "path": (str, NoneType), "dim": int, "lowercase": bool}
_TASK = {"name": str, "reader": dict, "model": dict, "metric": dict, "training": dict}


@dataclass(frozen=True)
class SavedRun:
    """Everything that a prediction needs.

    Attributes:
        run_id: the run's name.
        config: resolved.
        fitted: the reader and the vocabulary.
        model: in evaluation mode, on ``device``.
        words_digest: of the file of word vectors; None where it is not known, or none was read.
        encoder: the biLM; None for a baseline.
        device: where the model is.
    """

    run_id: str
    config: dict[str, Any]
    fitted: FittedData
    model: TaskModel
    words_digest: str | None
    encoder: Encoder | None
    device: str

    @cached_property
    def vectors(self) -> WordVectors:
        """The word vectors that the run was trained with, for words that are not in its vocabulary.

        Raises:
            UserError: if they are missing, or others.
        """
        try:
            vectors = WordVectors(**self.config["words"])
        except UserError as error:
            raise UserError(f"{error}; words that are new to run {self.run_id} are looked up in it") from error
        found = words_digest(self.config)
        if self.words_digest not in (None, found):
            path, expected = self.config["words"]["path"], quoted(self.words_digest)
            raise UserError(f"words.path={path} holds {found}, but run {self.run_id} has word vectors {expected}")
        return vectors


@dataclass(frozen=True)
class Moved:
    """Where the user's own files of a run are now; None for the place that they had.

    Attributes:
        bilm: of the biLM.
        words: of the word vectors.
        warm_text: of the text that warmed the biLM up.
    """

    bilm: str | None = None
    words: str | None = None
    warm_text: str | None = None


NOT_MOVED = Moved()


def read_model(folder: Path, moved: Moved = NOT_MOVED, packages: Sequence[str] = ()) -> SavedRun:
    """A run from its folder: the inverse of :func:`elmo_tasks.runs.folder.write_model`.

    Args:
        folder: ``runs/ID``.
        moved: files that are no longer where they were.
        packages: further packages whose classes the run may name.

    Raises:
        UserError: if files are missing, damaged or of another run, or if the biLM is another one.
    """
    expect_finished_run(folder)
    about = read_object(folder / RUN, {"run_id": str, "weights": str, "bilm": (dict, NoneType)})
    about = check_object({"words": None, **about}, str(folder / RUN), {"words": (str, NoneType)})
    if (
        not re.fullmatch(r"\w[^/]{0,200}", about["run_id"]) or not about["run_id"].isprintable()
    ):  # files are named after it
        raise UserError(f"{folder / RUN}: run_id must be the name of a run, found {quoted(about['run_id'])}")
    config = read_object(folder / CONFIG, dict.fromkeys(_SECTIONS, dict))
    task = check_object(config["task"], f"{folder / CONFIG}: task", _TASK)
    check_object(task["training"], f"{folder / CONFIG}: task.training", {"batch_size": int, "batch_tokens": int})
    words = check_object(config["words"], f"{folder / CONFIG}: words", _WORDS)
    if unknown := words.keys() - set(WordsConfig.model_fields):
        raise UserError(f"{folder / CONFIG}: words.{shortened(min(unknown), 60)} is not a setting of word vectors")
    path = folder / WEIGHTS
    if not path.is_file() or sha256(path) != about["weights"]:
        raise UserError(f"{path}: not the weights of run {shortened(about['run_id'], 100)}")
    _move(config, moved, about["run_id"])
    checked = load(config, str(folder / CONFIG), packages)
    config = checked.to_json()
    try:
        checked.check_components()
        return _build(folder, about, config)
    except UserError as error:
        raise error if str(folder) in str(error) else UserError(f"{folder / CONFIG}: {error}") from error
    except KeyError as error:
        raise UserError(f"{folder / CONFIG}: {error} is missing; expected the configuration of a run") from error


def _move(config: dict[str, Any], moved: Moved, run_id: str) -> None:
    """Set the places of files in a run's configuration."""
    if moved.bilm is not None:
        config["bilm"]["path"] = moved.bilm
    if moved.words is not None:
        if config["words"]["path"] is None:
            raise UserError(f"word vectors {moved.words}: run {run_id} read no file of word vectors")
        config["words"]["path"] = moved.words
    if moved.warm_text is not None:
        if config["bilm"].get("warm_text") is None:
            raise UserError(f"warm-up text {moved.warm_text}: run {run_id} read no such file")
        config["bilm"]["warm_text"] = moved.warm_text


def _build(folder: Path, about: dict[str, Any], config: dict[str, Any]) -> SavedRun:
    encoder = build_bilm(config)
    _check_encoder(folder, about["bilm"] or {}, config, encoder)
    fitted = read_fitted(make(config["task"]["reader"], config["packages"]), folder / FITTED)
    make(config["task"]["metric"], config["packages"])
    with torch.device("meta"):  # no memory is taken before the sizes are known to be those of the file
        check_shapes(build_model(config, fitted, build_elmo(config, encoder)), folder / WEIGHTS)
    model = build_model(config, fitted, build_elmo(config, encoder))
    read_weights(model, folder / WEIGHTS)
    device = choose_device(config)
    model.to(device).eval()
    return SavedRun(about["run_id"], config, fitted, model, about["words"], encoder, device)


def _check_encoder(folder: Path, about: dict[str, Any], config: dict[str, Any], encoder: Encoder | None) -> None:
    """Check that the biLM, and the text that warmed it up, are those of the run."""
    found = describe_bilm(config, encoder)
    digest, warm = (None, None) if found is None else (found.digest, found.warm)
    if digest != about.get("digest"):
        said = f"the run has biLM {quoted(about.get('digest'))}, but bilm.path={config['bilm']['path']} holds {digest}"
        raise UserError(f"{folder}: {said}")
    if warm != about.get("warm"):
        text = f"bilm.warm_text={config['bilm']['warm_text']}"
        raise UserError(f"{folder}: {text} is not the text that warmed up the biLM of the run")


def read_fitted(reader: Reader[Any], path: Path) -> FittedData:
    """What a run has kept of its training data.

    Args:
        reader: of the run's task and settings, not fitted.
        path: of the file.

    Raises:
        UserError: naming the file, if it is damaged or of another task.
    """
    state = read_json(path, _MAX_FITTED_BYTES)
    try:
        return FittedData.restore(reader, state)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
