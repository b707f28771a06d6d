"""The name of a run, which differs for everything that can change a score."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from elmo_tasks.rows.kinds import InitialWeightsRecord
from elmo_tasks.rows.parts import BilmRecord
from elmo_tasks.rows.settings import score_relevant, short_digest


@dataclass(frozen=True)
class RunInputs:
    """What a run reads; with the configuration, all that can change a score.

    Attributes:
        data: digest of the training and development data.
        test: digest of the test data, which are no part of the run's name: the same run can score several test sets.
        bilm: the biLM, or the encoder in its place; None where none takes part.
        words: digest of a file of word vectors; None where none is read.
        initial: what a biLM's training starts from, if not from random weights.
    """

    data: str
    test: str | None = None
    bilm: BilmRecord | None = None
    words: str | None = None
    initial: InitialWeightsRecord | None = None


def identify(cfg: dict[str, Any], inputs: RunInputs) -> str:
    """The name of a run: readable, and different for everything that can change a score."""
    part = score_relevant(cfg, cfg["task"]["kind"])
    if "words" in part:
        part["words"] = {**part["words"], "path": inputs.words}  # its content, wherever it is
    if "warm_text" in part.get("bilm", {}):
        part["bilm"] = {**part["bilm"], "warm_text": None}  # the digest in ``bilm_read`` stands for it
    bilm = None if inputs.bilm is None else asdict(inputs.bilm)
    digests = {"seed": cfg["seed"], "data_digest": inputs.data, "bilm_read": bilm}
    if inputs.initial is not None:
        digests["initial"] = inputs.initial.digest
    return f"{cfg['task']['name']}-{slug(cfg)}-s{cfg['seed']}-{short_digest({**part, **digests})}"


def slug(cfg: dict[str, Any]) -> str:
    """The readable middle of a run's name."""
    words = [cfg["data"]["name"], cfg["scale"]["name"]]
    if cfg["data"]["fraction"] != 1:
        words.append(f"f{cfg['data']['fraction']:g}")
    if cfg["task"]["kind"] == "language_model":
        text = cfg["task"]["lm"]["text"]
        return "-".join([*words, cfg["bilm"]["name"], *([] if text == "shards" else [text])])
    elmo = cfg["elmo"]
    words.append(elmo["placement"])
    if elmo["placement"] != "none":
        words += [cfg["bilm"]["name"], elmo["mix"]]
        words += [f"l{elmo['lambda']:g}"] if elmo["mix"] == "scalar" else []
        words += ["g1"] if elmo["gamma"] == "one" else []
    return "-".join(words)
