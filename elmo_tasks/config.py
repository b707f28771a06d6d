"""Checks on the composed configuration, before anything is loaded, and what of it defines the experiment."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from elmo_tasks.errors import UserError
from elmo_tasks.results import elmo_in_force

Check = Callable[[Any], bool]

TASKS = Path(__file__).parent.parent / "conf" / "task"
SHARDS = "shards"
"""``task.lm.text``: text files of its own, and not a task's sentences."""


def _number(low: float, high: float, *, above: bool = False, below: bool = False) -> tuple[str, Check]:
    """A number between bounds; ``above`` and ``below`` leave the bound itself out."""
    left, right = ("(" if above else "["), (")" if below or math.isinf(high) else "]")

    def check(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return False
        return (value > low if above else value >= low) and (value < high if below else value <= high)

    return f"a number in {left}{low:g}, {high:g}{right}", check


def _whole(low: int) -> tuple[str, Check]:
    return (
        f"a whole number of at least {low}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low,
    )


def _choice(*choices: str) -> tuple[str, Check]:
    return f"one of {', '.join(choices)}", lambda value: value in choices


def _either(*rules: tuple[str, Check]) -> tuple[str, Check]:
    return " or ".join(text for text, _ in rules), lambda value: any(check(value) for _, check in rules)


def _all_batches(limit: Any) -> bool:
    return isinstance(limit, float) and limit == 1  # 1 is a number of batches, 1.0 is all of them


def _optional(rule: tuple[str, Check]) -> tuple[str, Check]:
    text, check = rule
    return f"{text}, or null", lambda value: value is None or check(value)


def _list(rule: tuple[str, Check], length: int | None = None) -> tuple[str, Check]:
    """Of that length, or of any but none."""
    text, check = rule
    return (
        f"a list of {length or 'one or more'}, each {text}",
        lambda value: (
            isinstance(value, list) and len(value) == (length or max(1, len(value))) and all(map(check, value))
        ),
    )


_FLAG: tuple[str, Check] = ("true or false", lambda value: isinstance(value, bool))
_TEXT: tuple[str, Check] = ("a text", lambda value: isinstance(value, str) and value != "")

LM_RULES: dict[str, tuple[str, Check]] = {
    "task.lm.init": _optional(_TEXT),
    "task.lm.softmax_epochs": _whole(0),
    "task.data.batch_size": _whole(1),
    "task.data.window": _whole(1),
    "task.data.vocabulary_size": _whole(4),
    "task.data.min_count": _whole(1),
    "task.model.n_samples": _whole(1),
    "task.model.dropout": _number(0, 1, below=True),
    "task.model.forget": _number(0, 1),
    "trainer.limit_val_batches": _either(("1.0 (all batches)", _all_batches), _whole(1)),
}
_RATE, _SIZE = _number(0, 1, below=True), _whole(1)
MODEL_RULES: dict[str, tuple[str, Check]] = {
    **dict.fromkeys(("hidden", "linear", "pre_encode", "ffnn", "n_layers", "indicator_dim", "feature_dim"), _SIZE),
    **dict.fromkeys(("char_dim", "char_filters", "char_width"), _SIZE),
    **dict.fromkeys(("max_span_width", "max_antecedents", "max_answer_tokens"), _SIZE),
    **dict.fromkeys(("dropout", "lexical_dropout", "embedding_dropout", "pre_encode_dropout"), _RATE),
    "integrator_dropout": _RATE,
    "char_widths": _list(_SIZE),
    "spans_per_word": _number(0, math.inf, above=True),
    "classifier": _list(_SIZE, 2),
    "classifier_dropout": _list(_RATE, 2),
}
"""Of keys below ``task.model``, where a task has them; NER's ``hidden`` is a list, a number for each layer."""

RULES: dict[str, tuple[str, Check]] = {
    "seed": _whole(0),
    "test": _FLAG,
    "force": _FLAG,
    "ensemble": (
        "a list of two or more different seeds, such as [1,2,3], or null",
        lambda value: (
            value is None
            or (
                isinstance(value, list)
                and len(set(map(repr, value))) == len(value) > 1
                and all(isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0 for seed in value)
            )
        ),
    ),
    "elmo.placement": _choice("none", "input", "output", "both"),
    "elmo.mix": (
        "one of scalar, last, mean, layer_0, layer_1, ...",
        lambda value: isinstance(value, str) and re.fullmatch(r"scalar|last|mean|layer_\d+", value) is not None,
    ),
    "elmo.gamma": _choice("learned", "one"),
    "elmo.lambda": _number(0, math.inf),
    "elmo.dropout": _number(0, 1, below=True),
    "elmo.layer_norm": _FLAG,
    "bilm.name": (
        "a name of letters, digits, '.', '_' and '-'",
        lambda value: isinstance(value, str) and re.fullmatch(r"\w[\w.-]*", value) is not None,
    ),
    "bilm.path": _optional(_TEXT),
    "bilm.state": _choice("reset", "carry", "warm"),
    "bilm.precision": _choice("float32", "bfloat16"),
    "bilm.store.keep": _choice("layers", "tokens"),
    "bilm.store.dtype": _choice("float16", "float32"),
    "bilm.store.limit_gb": _number(0, math.inf, above=True),
    "data.root": _optional(_TEXT),
    "data.fraction": _number(0, 1, above=True),
    "words.dim": _whole(0),
    "words.path": _optional(_TEXT),
    "task.training.batch_size": _optional(_whole(1)),
    "task.training.batch_tokens": _optional(_whole(1)),
    "task.training.schedule": (
        "one of linear, halve, decay, or null",
        lambda value: value in (None, "linear", "halve", "decay"),
    ),
    "task.training.average": _optional(_number(0, 1, below=True)),
    "trainer.max_epochs": _whole(1),
    "trainer.max_steps": _either(("-1 (no bound)", lambda value: value == -1), _whole(1)),
    "trainer.patience": _optional(_whole(1)),
    "trainer.threads": _optional(_whole(1)),
    "trainer.num_nodes": _whole(1),
    "trainer.progress": _FLAG,
    "trainer.val_check_interval": _optional(_whole(1)),
    "trainer.limit_val_batches": _either(_number(0, 1, above=True), _whole(1)),
    "results.dir": _TEXT,
}


def validate(cfg: DictConfig) -> dict[str, Any]:
    """Resolve the configuration and check each value that a user sets.

    Returns:
        the resolved configuration as plain Python containers.

    Raises:
        UserError: naming the key, what it may be, and what was found.
    """
    for key in OmegaConf.missing_keys(cfg):
        raise UserError(f"{key} is not set; add {key}=... to the command line")
    try:
        resolved = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise UserError(f"{error.full_key} is not set; add {error.full_key}=... to the command line") from error
    except OmegaConfBaseException as error:
        raise UserError(f"the configuration cannot be resolved: {str(error).splitlines()[0]}") from error
    assert isinstance(resolved, dict)
    is_lm = "lm" in resolved["task"]
    for key, (expected, check) in (RULES | (LM_RULES if is_lm else {}) | _rules_of_model(resolved["task"])).items():
        value: Any = resolved
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if not check(value):
            raise UserError(f"{key} must be {expected}, found {value!r}")
    if resolved["words"]["name"] == "none" and resolved["elmo"]["placement"] not in ("input", "both"):
        raise UserError("words=none leaves a model nothing to read but ELMo at its input; add words=glove")
    if is_lm and resolved["task"]["lm"]["text"] != SHARDS:
        resolved["task"]["lm"]["source"] = source_of_text(cfg, resolved["task"]["lm"]["text"])
    return resolved  # type: ignore[return-value]


def _rules_of_model(task: dict[str, Any]) -> dict[str, tuple[str, Check]]:
    rules = {f"task.model.{key}": MODEL_RULES[key] for key in task.get("model", {}) if key in MODEL_RULES}
    return rules | ({"task.model.hidden": _list(_SIZE)} if task["name"] == "ner" else {})


def source_of_text(cfg: DictConfig, name: Any) -> dict[str, Any]:
    """The files and the reader of a task whose sentences a biLM is to read, with ``task.lm.changes`` to them.

    Raises:
        UserError: if there is no such task.
    """
    sections = {path.stem: OmegaConf.load(path) for path in sorted(TASKS.glob("*.yaml"))}
    tasks = [task for task, section in sections.items() if "reader" in section]
    if name not in tasks:
        raise UserError(f"task.lm.text must be {SHARDS} or one of {', '.join(tasks)}, found {name!r}")
    changes = cfg.task.lm.changes.get(name, {})
    whole = OmegaConf.create({**cfg, "task": OmegaConf.merge(sections[name], changes)})
    source = {key: whole.task[key] for key in ("files", "hub", "reader")}
    return {key: OmegaConf.to_container(part, resolve=True) if part else None for key, part in source.items()}


def science(cfg: dict[str, Any], digests: dict[str, Any]) -> dict[str, Any]:
    """The part of a resolved configuration that can change a score; it makes the run's fingerprint.

    Args:
        cfg: what :func:`validate` returned.
        digests: of the biLM (if it takes part, or if its training starts from one) and of the data files, in place of
            their paths.
    """
    part: dict[str, Any] = {"task": cfg["task"], "seed": cfg["seed"], "scale": cfg["scale"]["name"], **digests}
    part["data"] = {"name": cfg["data"]["name"], "fraction": cfg["data"]["fraction"]}
    if "model" in cfg["task"]:
        part["training"] = _training_in_force(cfg["trainer"])
    if "elmo" in cfg["task"]:
        if "model" in cfg["task"]:
            part["words"] = cfg["words"]
        part["elmo"] = elmo_in_force(cfg["elmo"])
        part["task"] = {key: value for key, value in cfg["task"].items() if key != "elmo"}
    else:
        part["task"] = {**cfg["task"], "lm": {**cfg["task"]["lm"], "init": None}}
        part["bilm_options"] = cfg["bilm"]["options"]
    return part


def _training_in_force(trainer: dict[str, Any]) -> dict[str, Any]:
    """What of a configuration's section ``trainer`` can change a score.

    How often and on how much dev text a checkpoint is chosen is named only where it is not every epoch and all of it:
    that went without saying before, and rows of that time keep their fingerprints.
    """
    part = {key: trainer[key] for key in ("max_epochs", "max_steps", "patience", "precision")}
    if trainer["val_check_interval"] is not None:
        part["val_check_interval"] = trainer["val_check_interval"]
    if not _all_batches(trainer["limit_val_batches"]):
        part["limit_val_batches"] = trainer["limit_val_batches"]
    return part


def slug(cfg: dict[str, Any]) -> str:
    """The readable middle of a run's name."""
    words = [cfg["data"]["name"], cfg["scale"]["name"]]
    if cfg["data"]["fraction"] != 1:
        words.append(f"f{cfg['data']['fraction']:g}")
    if "elmo" in cfg["task"]:
        elmo = cfg["elmo"]
        words.append(elmo["placement"])
        if elmo["placement"] != "none":
            words += [cfg["bilm"]["name"], elmo["mix"]]
            words += [f"l{elmo['lambda']:g}"] if elmo["mix"] == "scalar" else []
            words += ["g1"] if elmo["gamma"] == "one" else []
    else:
        words.append(cfg["bilm"]["name"])
        words += [text] if (text := cfg["task"]["lm"]["text"]) != SHARDS else []
    return "-".join(words)
