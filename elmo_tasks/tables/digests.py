"""Digests of the files that a setting reads: they decide which rows count, and which runs have to be repeated."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from elmo_tasks.files import digest_files
from elmo_tasks.places import SAMPLE
from elmo_tasks.rows.settings import own_words
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.settings import NO_ROOT, Setting


def digest_data(setting: Setting) -> tuple[str | None, str | None]:
    """Digests of the data files that a setting names, of train and dev and of test; None where it names none.

    Raises:
        UserError: if a folder that it names is not there.
    """
    root, task = setting.config["data"]["root"], setting.config["task"]
    if root in (None, NO_ROOT):
        return None, None
    if setting.kind != "supervised":
        return _digest_text(json.dumps({name: setting.config[name] for name in ("task", "data", "seed")}))
    return _digest_data(root, json.dumps(task["files"]), json.dumps(task["reader"]))


def digest_words(setting: Setting) -> str | None:
    """Digest of the user's file of word vectors that a setting names; None where it names none, or none is there."""
    path = own_words(setting.config, setting.kind)
    return None if path is None or not Path(path).is_file() else _digest_file(path)


def digest_bilm(setting: Setting) -> str | None:
    """As above, for the biLM, or the encoder in its place, that ``bilm.path`` names."""
    bilm = setting.config["bilm"]
    return _encoder_digest(_text(bilm)) if _reads_layers(setting) and bilm["path"] is not None else None


def digest_bundled(setting: Setting) -> str | None:
    """Digest of the bundled weights that a run of the setting would read, or start from; None if it reads none."""
    from elmo_tasks.bilm.model import bundled_folder  # torch takes seconds to import

    bilm, task = setting.config["bilm"], setting.config["task"]
    if _reads_layers(setting):
        is_bundled = bilm["path"] is None and bundled_folder(bilm["name"]) is not None
        return _encoder_digest(_text(bilm)) if is_bundled else None
    init = task["lm"]["init"] if setting.kind == "language_model" else None
    return None if init is None or bundled_folder(init) is None else _start_digest(init, _text(bilm))


def has_earlier_weights(cell: Cell) -> bool:
    """Whether the rows are of an earlier version of the bundled weights."""
    return bool(cell.rows) and digest_bundled(cell.setting) not in (None, cell.bilm_digest)


def _reads_layers(setting: Setting) -> bool:
    return setting.kind != "language_model" and setting.config["elmo"]["placement"] != "none"


def _text(bilm: dict[str, Any]) -> str:
    """The section ``bilm`` of a configuration as a cache key; warming a biLM up does not change its digest."""
    return json.dumps(bilm | {"state": "reset"})


@functools.cache
def _digest_file(path: str) -> str:
    return digest_files([Path(path)])


@functools.cache
def _digest_data(root: str, files: str, reader: str) -> tuple[str, str | None]:
    from elmo_tasks.configuration.instances import make
    from elmo_tasks.data.source import Files

    folder = str(SAMPLE) if root == "bundled" else root
    found = Files(folder, json.loads(files), make(json.loads(reader)))
    return found.digest, found.test_digest


@functools.cache
def _digest_text(config: str) -> tuple[str, str | None]:
    """Of the text that a biLM is trained on, or of the sense-annotated text of a probe."""
    from elmo_tasks.assembly import build_sense_data
    from elmo_tasks.assembly.data import build_text

    cfg = json.loads(config)
    if cfg["task"]["kind"] == "language_model":
        return build_text(cfg).digest, None
    data = build_sense_data(cfg)
    return data.digest, data.test_digest


@functools.cache
def _encoder_digest(bilm: str) -> str:
    from elmo_tasks.assembly.encoder import load_encoder

    return load_encoder(json.loads(bilm), "cpu").digest


@functools.cache
def _start_digest(init: str, bilm: str) -> str:
    from elmo_tasks.assembly.encoder import bilm_options
    from elmo_tasks.pretrain.export import read_initial_weights

    return read_initial_weights(init, bilm_options(json.loads(bilm))).digest
