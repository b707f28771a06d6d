"""A finished run read back from its folder, without its training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.assembly import build_bilm, build_elmo, build_model, build_store, choose_device, make, read_weights
from elmo_tasks.configuration.targets import check_classes
from elmo_tasks.data.fitted import FittedData
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.files import sha256
from elmo_tasks.models.base import TaskModel
from elmo_tasks.runs.folder import CONFIG, FITTED, RUN, WEIGHTS, read_json
from elmo_tasks.store.store import Store


@dataclass(frozen=True)
class SavedRun:
    """Everything that a prediction needs.

    Attributes:
        run_id: the run's name.
        config: resolved.
        fitted: the reader and the vocabulary.
        model: in evaluation mode, on ``device``.
        encoder: the biLM; None for a baseline.
        store: of the biLM's layers; None for a baseline.
        device: where the model is.
    """

    run_id: str
    config: dict[str, Any]
    fitted: FittedData
    model: TaskModel
    encoder: Encoder | None
    store: Store | None
    device: str


def read_model(folder: Path, *, bilm_path: str | None = None, packages: Sequence[str] = ()) -> SavedRun:
    """A run from its folder: the inverse of :func:`elmo_tasks.runs.folder.write_model`.

    Args:
        folder: ``runs/ID``.
        bilm_path: where the biLM is now; None for the place that it had.
        packages: further packages whose classes the run may name.

    Raises:
        UserError: if files are missing, damaged or of another run, or if the biLM is another one.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; expected that of a finished run")
    about, config = read_json(folder / RUN), read_json(folder / CONFIG)
    check_classes(config, packages)
    path = folder / WEIGHTS
    if not path.is_file() or sha256(path) != about.get("weights"):
        raise UserError(f"{path}: not the weights of run {about.get('run_id')}")
    try:
        return _build(folder, about, config, bilm_path)
    except (KeyError, TypeError) as error:
        raise UserError(f"{folder / CONFIG}: not the configuration of a run ({error})") from error


def _build(folder: Path, about: dict[str, Any], config: dict[str, Any], bilm_path: str | None) -> SavedRun:
    if bilm_path is not None:
        config["bilm"]["path"] = bilm_path
    encoder = build_bilm(config)
    found, expected = None if encoder is None else encoder.digest, (about["bilm"] or {}).get("digest")
    if found != expected:
        raise UserError(f"{folder}: the run has biLM {expected}, but bilm.path={config['bilm']['path']} holds {found}")
    try:
        fitted = FittedData.restore(make(config["task"]["reader"]), read_json(folder / FITTED))
    except UserError as error:
        raise UserError(f"{folder / FITTED}: {error}") from error
    model = build_model(config, fitted, build_elmo(config, encoder))
    read_weights(model, folder / WEIGHTS)
    device = choose_device(config)
    model.to(device).eval()
    return SavedRun(about["run_id"], config, fitted, model, encoder, build_store(config, encoder), device)
