"""Which part of a configuration can change a score: the one definition that run ids, tables and reports share.

Runs that agree in all of it (and in the digests of what they read) differ in nothing but the seed, and are averaged;
runs that differ in any of it never share a line. A key that is not listed here as without effect counts, so that a new
key keeps runs apart without being named anywhere.

What is said of it in three places differs only in the user's own files. :func:`score_relevant` keeps the places of word
vectors and of the warm-up text as they were given. :func:`setting_key`, by which rows are averaged, says only whether
there are such files. The run ID (:func:`elmo_tasks.configuration.identity.identify`) has digests of their contents.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from elmo_tasks.rows.fields import Kind

SECTIONS: dict[Kind, tuple[str, ...]] = {
    "supervised": ("task", "data", "scale", "trainer", "elmo", "bilm", "words"),
    "language_model": ("task", "data", "scale", "trainer", "bilm"),
    "sense_probe": ("task", "data", "scale", "elmo", "bilm"),
    "ensemble": ("task", "data", "scale", "trainer", "elmo", "bilm", "words"),
}
"""Sections of the configuration that each kind of run reads; an ensemble has those of its members."""

WITHOUT_EFFECT = (
    "task.files",  # the digest of the data stands for them
    "task.data.test",  # scores on the test set are recorded with its own digest
    "task.hub",
    "task.kind",
    "task.training.max_epochs",  # defaults of the section trainer
    "task.training.patience",
    "task.lm.changes",  # those in force stand in task.lm.source
    "task.lm.init",  # the digest of the initial weights stands for it
    "task.lm.train",
    "task.lm.heldout",
    "task.lm.source.files",
    "task.lm.source.hub",
    "task.elmo",  # defaults of the section elmo
    "task.words",  # defaults of the section words
    "words.paper_dim",  # what words.dim is compared with
    "words.any_dim",
    "data.root",
    "trainer.accelerator",
    "trainer.devices",
    "trainer.num_nodes",
    "trainer.progress",
    "trainer.threads",
    "bilm.path",  # the digest of the weights stands for it
    "bilm.store.dir",
    "bilm.store.limit_gb",
)

_READERS = (["task", "reader"], ["task", "lm", "source", "reader"])


def score_relevant(config: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The part of a resolved configuration that can change a score, without the seed.

    For a baseline, no other setting of ELMo counts, and neither does the biLM. A reader's key that is not set (null)
    counts as one that is not there, so that a new one changes the name of no older run.
    """
    part = {name: config[name] for name in SECTIONS[kind] if name in config}
    for place in _READERS:
        part = _without_unset(part, place)
    if kind == "language_model":  # it trains a biLM, and does not read one
        part["bilm"] = {name: config["bilm"][name] for name in ("name", "options")}
    if isinstance(limit := part.get("trainer", {}).get("limit_val_batches"), int):  # 1 is one batch, 1.0 is all
        part["trainer"] = {**part["trainer"], "limit_val_batches": f"{limit} batches"}
    if part.get("elmo", {}).get("placement") == "none":
        part["elmo"] = {"placement": "none"}
        part.pop("bilm", None)
    store = part.get("bilm", {}).get("store", {})
    if store.get("keep") == "layers" or store.get("dtype") == "float32":  # else a rounded token layer is read
        part = _without(part, ["bilm", "store", "keep"])
    for path in WITHOUT_EFFECT:
        part = _without(part, path.split("."))
    return part


def setting_key(config: dict[str, Any], kind: Kind) -> str:
    """A key that the runs of one setting share, whatever files they read.

    Runs with the user's own weights (``bilm.path``) and with bundled weights of the same name have different keys, and
    so have runs with the user's own word vectors or warm-up text and with the package's, and biLMs that started from
    other weights.
    """
    part = _without(score_relevant(config, kind), ["task", "data", "seed"])  # it is that of the run
    if own_words(config, kind) is not None:
        part["words"] = {**part["words"], "path": "own"}
    if part.get("bilm", {}).get("warm_text") is not None:
        part["bilm"] = {**part["bilm"], "warm_text": "own"}
    if kind == "language_model" and (start := config.get("task", {}).get("lm", {}).get("init")) is not None:
        part["start"] = "own" if "/" in start else start
    reads_bilm = kind != "language_model" and config.get("elmo", {}).get("placement") != "none"
    has_own_weights = config.get("bilm", {}).get("path") is not None
    return short_digest([part, reads_bilm and has_own_weights])


def own_words(config: dict[str, Any], kind: Kind) -> str | None:
    """The user's file of word vectors that a run reads; None if it reads none."""
    path: str | None = config.get("words", {}).get("path") if "words" in SECTIONS[kind] else None
    return path


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """A nested mapping by dotted key."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        found |= flat(value, f"{name}.") if isinstance(value, dict) and value else {name: value}
    return found


def short_digest(content: Any) -> str:
    """Eight hexadecimal digits of anything JSON holds; 1 and 1.0 are the same number."""
    return hashlib.sha256(json.dumps(_floats(content), sort_keys=True).encode()).hexdigest()[:8]


def _without(part: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """A copy without the key at ``path``, if it is there."""
    key, *rest = path
    if key not in part or (rest and not isinstance(part[key], dict)):
        return part
    others = {name: value for name, value in part.items() if name != key}
    return others | {key: _without(part[key], rest)} if rest else others


def _without_unset(part: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """A copy without the keys of the section at ``path`` whose value is None, if the section is there."""
    if not path:
        return {name: value for name, value in part.items() if value is not None}
    key, *rest = path
    return part | {key: _without_unset(part[key], rest)} if isinstance(part.get(key), dict) else part


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _floats(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_floats(v) for v in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def differing(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The part of each flat mapping in which not all of them agree; a key that one lacks counts as None."""
    keys = sorted({key for setting in settings for key in setting})
    told_apart = [key for key in keys if len({short_digest(setting.get(key)) for setting in settings}) > 1]
    return [{key: setting.get(key) for key in told_apart} for setting in settings]
