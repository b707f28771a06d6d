"""Digests of the files that a setting reads: they decide which rows count, and which runs have to be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from elmo_tasks.config.identity import Json, own_words
from elmo_tasks.files import digest_files, read_json
from elmo_tasks.places import BUNDLED, SAMPLE, bundled_folder
from elmo_tasks.rows.collection import FilesAtHand
from elmo_tasks.tables.wanted import NO_ROOT, Wanted

STORED = BUNDLED / "bilm" / "digests.json"
"""Digests of the bundled weights of each precision, and as a ``start``, with those of the files that they hold for."""

T = TypeVar("T")
_FOUND: dict[tuple[str, str], Any] = {}
"""What has been read in this process, by function and argument: many cells share their files."""


def files_at_hand(wanted: Wanted, bilm: str | None = None) -> FilesAtHand:
    """Digests of the files that a run of a configuration would read.

    Args:
        wanted: the configuration.
        bilm: digest of the biLM, if it is known although its files may be gone.

    Raises:
        UserError: if a folder that it names is not there.
    """
    data, test = digest_data(wanted)
    path = own_words(wanted.config, wanted.kind)
    return FilesAtHand(data, test, digest_words(wanted), path, bilm or digest_bilm(wanted))


def digest_data(wanted: Wanted) -> tuple[str | None, str | None]:
    """Digests of the data files that a configuration names, of train and dev and of test; None where it names none.

    Raises:
        UserError: if a folder that it names is not there.
    """
    config = wanted.config
    task, data, packages = config["task"], config["data"], config["packages"]
    if data["root"] in (None, NO_ROOT):
        return None, None
    if wanted.kind == "supervised":
        files = {"root": data["root"], "files": task["files"], "reader": task["reader"], "packages": packages}
        return _once(_digest_files, files)
    return _once(_digest_text, {"task": task, "data": data, "seed": config["seed"], "packages": packages})


def digest_words(wanted: Wanted) -> str | None:
    """Digest of the user's file of word vectors that it names; None where it names none, or none is there."""
    path = own_words(wanted.config, wanted.kind)
    return None if path is None or not Path(path).is_file() else _once(_digest_words, {"path": path})


def digest_bilm(wanted: Wanted) -> str | None:
    """As above, for the biLM, or the encoder in its place, that ``bilm.path`` names."""
    bilm = wanted.config["bilm"]
    return _once(_digest_encoder, _unwarmed(bilm)) if _reads_layers(wanted) and bilm["path"] is not None else None


def digest_bundled(wanted: Wanted) -> str | None:
    """Digest of the bundled weights that a run would read, or start from; None if it reads none."""
    bilm, task = wanted.config["bilm"], wanted.config["task"]
    if _reads_layers(wanted):
        name = None if bilm["path"] is not None else bilm["name"]
        kind, read, part = bilm["precision"], _digest_encoder, _unwarmed(bilm)
    else:
        name = task["lm"]["init"] if wanted.kind == "language_model" else None
        kind, read, part = "start", _digest_start, {"init": name, "bilm": _unwarmed(bilm)}
    if name is None or bundled_folder(name) is None:
        return None
    stored = _once(_read_stored, {"name": name})
    return str(stored[kind]) if stored.get("options") == bilm["options"] else _once(read, part)


def _reads_layers(wanted: Wanted) -> bool:
    return wanted.kind != "language_model" and wanted.config["elmo"]["placement"] != "none"


def _unwarmed(bilm: Json) -> Json:
    """The section ``bilm`` of a configuration; warming a biLM up does not change its digest."""
    return bilm | {"state": "reset"}


def _once(read: Callable[[Json], T], part: Json) -> T:
    """What a function reads for a part of the configuration."""
    key = read.__name__, json.dumps(part)
    if key not in _FOUND:
        _FOUND[key] = read(part)
    found: T = _FOUND[key]
    return found


def _read_stored(part: Json) -> Json:
    """What stands beside bundled weights: their sizes and digests, which need no PyTorch; nothing if files differ."""
    folder = BUNDLED / "bilm" / part["name"]
    about: Json = read_json(STORED).get(part["name"], {})
    files = [folder / name for name in about.get("files", ())]
    same = all(file.exists() for file in files) and digest_files(files) == about.get("digest")
    return about | {"options": read_json(folder / "options.json")} if same else {}


def _digest_words(words: Json) -> str:
    return digest_files([Path(words["path"])])


def _digest_files(part: Json) -> tuple[str, str | None]:
    from elmo_tasks.config.components import make
    from elmo_tasks.data.source import Files

    folder = str(SAMPLE) if part["root"] == "bundled" else part["root"]
    found = Files(folder, part["files"], make(part["reader"], part["packages"]))
    return found.digest, found.test_digest


def _digest_text(cfg: Json) -> tuple[str, str | None]:
    """Of the text that a biLM is trained on, or of the sense-annotated text of a probe."""
    from elmo_tasks.assembly import build_sense_data
    from elmo_tasks.assembly.data import build_text

    if cfg["task"]["kind"] == "language_model":
        return build_text(cfg).digest, None
    data = build_sense_data(cfg)
    return data.digest, data.test_digest


def _digest_encoder(part: Json) -> str:
    from elmo_tasks.assembly.encoder import load_encoder

    return load_encoder(part, "cpu").digest


def _digest_start(part: Json) -> str:
    from elmo_tasks.assembly.encoder import bilm_options
    from elmo_tasks.pretrain.export import read_initial_weights

    return read_initial_weights(part["init"], bilm_options(part["bilm"])).digest
