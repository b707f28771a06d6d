"""The frozen biLM (or the encoder in its place), the store of its layers, and how it enters a task model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.bilm.model import BiLM
from elmo_tasks.bilm.options import BiLMOptions, differing
from elmo_tasks.config.components import make
from elmo_tasks.data.corpus import read_sentences
from elmo_tasks.elmo import Elmo
from elmo_tasks.encoders.base import Encoder
from elmo_tasks.errors import UserError
from elmo_tasks.places import SAMPLE_TEXT, bundled_folder
from elmo_tasks.processor import device_for
from elmo_tasks.store.layers import LayerStore
from elmo_tasks.store.store import Store
from elmo_tasks.store.tokens import TokenStore

PUBLISHED = ("small", "medium", "original")
"""Names that stand for published sizes; files of other sizes below one of them are a mistake."""


def build_bilm(cfg: dict[str, Any]) -> Encoder | None:
    """The frozen biLM or the encoder in its place; None for a baseline.

    Raises:
        UserError: if the files are missing or are not of the size that ``bilm=`` names.
    """
    return (
        None if cfg["elmo"]["placement"] == "none" else load_encoder(cfg["bilm"], choose_device(cfg), cfg["packages"])
    )


def load_encoder(bilm: dict[str, Any], device: str, packages: Sequence[str] = ()) -> Encoder:
    """The encoder that the section ``bilm`` of a configuration describes.

    Raises:
        UserError: as :func:`build_bilm`.
    """
    return _other_encoder(bilm, device, packages) if "encoder" in bilm else _language_model(bilm, device)


def _language_model(bilm: dict[str, Any], device: str) -> BiLM:
    name, path, warm_text = bilm["name"], bilm["path"], bilm["warm_text"]
    if path is None and bundled_folder(name) is None:
        raise UserError(
            f"bilm={name} is not bundled; set bilm.path to the folder with its options.json and weights.hdf5"
        )
    if bilm["state"] == "warm" and warm_text is None and name == "mini_ko":
        raise UserError(
            "bilm.state=warm: the bundled text is English; set bilm.warm_text to a Korean one for bilm=mini_ko"
        )
    if bilm["precision"] == "int8" and device != "cpu":
        raise UserError(
            f"bilm.precision=int8 is for a CPU, and the biLM would run on {device}; set bilm.precision=bfloat16"
        )
    model = BiLM.load(name if path is None else Path(path))
    model.precision = bilm["precision"]
    expected = bilm_options(bilm)
    if name in PUBLISHED and model.options != expected:
        theirs, ours = differing(model.options, expected)
        raise UserError(f"bilm={name} has {ours}, but bilm.path={path} holds {theirs}")
    if bilm["state"] == "warm":
        model.warm_up(list(read_sentences(Path(warm_text or SAMPLE_TEXT / "heldout.txt"))))
    return model.to(device)


def _other_encoder(bilm: dict[str, Any], device: str, packages: Sequence[str]) -> Encoder:
    found_and_only = [
        ("state", bilm["state"], "reset"),
        ("precision", bilm["precision"], "float32"),
        ("store.keep", bilm["store"]["keep"], "layers"),
    ]
    for key, found, only in found_and_only:
        if found != only:
            raise UserError(f"bilm.{key}={found} needs a biLM; bilm={bilm['name']} supports only {only}")
    if bilm["path"] is None:
        raise UserError(f"bilm={bilm['name']} is not bundled; set bilm.path to its files")
    encoder: Encoder = make(bilm["encoder"], packages, **{**bilm["options"], "path": bilm["path"]}).to(device)
    return encoder


def build_store(cfg: dict[str, Any], encoder: Encoder | None) -> Store | None:
    """The store of this encoder's layers (or of a biLM's token layer alone); None without an encoder."""
    if encoder is None:
        return None
    store = cfg["bilm"]["store"]
    settings = {key: store[key] for key in ("dtype", "limit_gb")}
    settings |= {"state": cfg["bilm"]["state"], "progress": cfg["trainer"]["progress"]}
    if store["keep"] == "layers":
        return LayerStore(Path(store["dir"]), encoder, **settings)
    assert isinstance(encoder, BiLM)  # see _other_encoder
    return TokenStore(Path(store["dir"]), encoder, **settings)


def build_elmo(cfg: dict[str, Any], encoder: Encoder | None) -> Elmo:
    """Where and how the encoder enters the task model."""
    elmo = cfg["elmo"]
    return Elmo(
        placement=elmo["placement"],
        n_layers=encoder.n_layers if encoder else 0,
        dim=encoder.dim if encoder else 0,
        mix=elmo["mix"],
        gamma=elmo["gamma"],
        lambda_=elmo["lambda"],
        dropout=elmo["dropout"],
        layer_norm=elmo["layer_norm"],
    )


def bilm_options(bilm: dict[str, Any]) -> BiLMOptions:
    """The sizes that ``bilm=`` names.

    Raises:
        UserError: if it names an encoder that is not a biLM.
    """
    if "encoder" in bilm:
        raise UserError(f"bilm={bilm['name']} is not a biLM and cannot be trained with task=lm; set bilm=mini")
    return BiLMOptions.from_json(bilm["options"], source=f"bilm={bilm['name']}")


def choose_device(cfg: dict[str, Any]) -> str:
    """The device of the biLM, of training and of scoring."""
    return device_for(cfg["trainer"]["accelerator"])
