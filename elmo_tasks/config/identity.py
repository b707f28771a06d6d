"""The names of runs and settings: what of a configuration can change a score.

Runs that agree in all that can change a score (and in the digests of what they read) differ in nothing but the seed,
and are averaged; runs that differ in any of it never share a line. A key counts unless its field says
:data:`elmo_tasks.config.schema.NO_EFFECT`, so that a new key keeps runs apart without being named here.

All functions take a configuration as a row stores it, which may be that of another version, or a part of one.

The user's own files are treated in three ways. :func:`relevant` keeps the places of word vectors and of the warm-up
text as they were given. :func:`setting_key`, by which rows are averaged, says only whether there are such files.
:func:`run_id` has digests of their contents.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from elmo_tasks.config.schema import NO_EFFECT, Config, ConfigSection

Json = dict[str, Any]
Kind = Literal["supervised", "language_model", "sense_probe", "ensemble"]

_SECTIONS: dict[Kind, tuple[str, ...]] = {
    "supervised": ("task", "data", "scale", "trainer", "elmo", "bilm", "words"),
    "language_model": ("task", "data", "scale", "trainer", "bilm"),
    "sense_probe": ("task", "data", "scale", "elmo", "bilm"),
}
"""Sections of the configuration that each kind of run reads; an ensemble reads those of its members."""


_READERS = (("task", "reader"), ("task", "lm", "source", "reader"))


@dataclass(frozen=True)
class RunDigests:
    """What a run reads; with the configuration, all that can change a score.

    Attributes:
        data: of the training and development data.
        test: of the test data, which are no part of the run's name: the same run can score several test sets.
        bilm: the record of the biLM, or of the encoder in its place; None where none takes part.
        words: of a file of word vectors; None where none is read.
        initial: of what a biLM's training starts from, if not from random weights.
    """

    data: str
    test: str | None = None
    bilm: Any = None
    words: str | None = None
    initial: str | None = None


@functools.cache
def paths_without_effect() -> frozenset[str]:
    """The dotted keys that cannot change a score, by the metadata of their fields."""
    return frozenset(_without_effect(Config))


def _without_effect(section: Any, prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        if NO_EFFECT in field.metadata:
            yield key
            continue
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, ConfigSection):
                yield from _without_effect(part, f"{key}.")


def relevant(stored: Json, kind: Kind) -> Json:
    """The part of a configuration that can change a score, without the seed.

    For a baseline, no other setting of ELMo counts, and neither does the biLM. A reader's key that is not set (null)
    counts as one that is not there, so that a new one changes the name of no older run.
    """
    part = {name: stored[name] for name in _sections(kind) if name in stored}
    for place in _READERS:
        part = _without_unset(part, place)
    if kind == "language_model":  # it trains a biLM, and does not read one
        part["bilm"] = {name: stored["bilm"][name] for name in ("name", "options") if name in stored["bilm"]}
    if isinstance(limit := part.get("trainer", {}).get("limit_val_batches"), int):  # 1 is one batch, 1.0 is all
        part["trainer"] = {**part["trainer"], "limit_val_batches": f"{limit} batches"}
    if part.get("elmo", {}).get("placement") == "none":
        part["elmo"] = {"placement": "none"}
        part.pop("bilm", None)
    store = part.get("bilm", {}).get("store", {})
    if store.get("keep") == "layers" or store.get("dtype") == "float32":  # else a rounded token layer is read
        part = _without(part, {"bilm.store.keep"})
    return _without(part, paths_without_effect())


def _sections(kind: Kind) -> tuple[str, ...]:
    return _SECTIONS["supervised" if kind == "ensemble" else kind]


def _without(part: Json, paths: frozenset[str] | set[str], prefix: str = "") -> Json:
    """A copy without the keys at some paths."""
    return {
        name: _without(value, paths, f"{prefix}{name}.") if isinstance(value, dict) else value
        for name, value in part.items()
        if f"{prefix}{name}" not in paths
    }


def _without_unset(part: Json, place: Sequence[str]) -> Json:
    """A copy without the keys of the section at a place whose value is None, if the section is there."""
    if not place:
        return {name: value for name, value in part.items() if value is not None}
    key, *rest = place
    return part | {key: _without_unset(part[key], rest)} if isinstance(part.get(key), dict) else part


def run_id(stored: Json, kind: Kind, inputs: RunDigests) -> str:
    """The name of a run: readable, and different for everything that can change a score."""
    part = relevant(stored, kind)
    if "words" in part:
        part["words"] = {**part["words"], "path": inputs.words}  # its content, wherever it is
    if "warm_text" in part.get("bilm", {}):
        part["bilm"] = {**part["bilm"], "warm_text": None}  # the digest in ``bilm_read`` stands for it
    bilm = None if inputs.bilm is None else asdict(inputs.bilm)
    digests = {"seed": stored["seed"], "data_digest": inputs.data, "bilm_read": bilm}
    if inputs.initial is not None:
        digests["initial"] = inputs.initial
    name, seed = stored["task"]["name"], stored["seed"]
    return f"{name}-{slug(stored, kind)}-s{seed}-{short_digest({**part, **digests})}"


def slug(stored: Json, kind: Kind) -> str:
    """The readable middle of a run's name."""
    data, elmo, bilm = stored["data"], stored["elmo"], stored["bilm"]["name"]
    words = [data["name"], stored["scale"]["name"]]
    if data["fraction"] != 1:
        words.append(f"f{data['fraction']:g}")
    if kind == "language_model":
        text = stored["task"]["lm"]["text"]
        return "-".join([*words, bilm, *([] if text == "shards" else [text])])
    words.append(elmo["placement"])
    if elmo["placement"] != "none":
        words += [bilm, elmo["mix"]]
        words += [f"l{elmo['lambda']:g}"] if elmo["mix"] == "scalar" else []
        words += ["g1"] if elmo["gamma"] == "one" else []
    return "-".join(words)


def setting_key(stored: Json, kind: Kind) -> str:
    """A key that the runs of one setting share, whatever files they read.

    Runs with the user's own weights (``bilm.path``) and with bundled weights of the same name have different keys, and
    so have runs with the user's own word vectors or warm-up text and with the package's, and biLMs that started from
    other weights.
    """
    part = _without(relevant(stored, kind), {"task.data.seed"})  # it is that of the run
    if own_words(stored, kind) is not None:
        part["words"] = {**part["words"], "path": "own"}
    if part.get("bilm", {}).get("warm_text") is not None:
        part["bilm"] = {**part["bilm"], "warm_text": "own"}
    if kind == "language_model" and (start := stored.get("task", {}).get("lm", {}).get("init")) is not None:
        part["start"] = "own" if "/" in start else start
    reads_bilm = kind != "language_model" and stored.get("elmo", {}).get("placement") != "none"
    has_own_weights = stored.get("bilm", {}).get("path") is not None
    return short_digest([part, reads_bilm and has_own_weights])


def own_words(stored: Json, kind: Kind) -> str | None:
    """The user's file of word vectors that a run reads; None if it reads none."""
    path: str | None = stored.get("words", {}).get("path") if "words" in _sections(kind) else None
    return path


def short_digest(content: Any) -> str:
    """Eight hexadecimal digits of anything JSON holds; 1 and 1.0 are the same number."""
    return hashlib.sha256(json.dumps(_floats(content), sort_keys=True).encode()).hexdigest()[:8]


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _floats(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
