"""What each key of a configuration may be, in words and as a check."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

Rule = tuple[str, Callable[[Any], bool]]


def rules_for(task: dict[str, Any]) -> dict[str, Rule]:
    """The rules of a task's configuration by dotted key."""
    model = {f"task.model.{key}": MODEL_RULES[key] for key in task.get("model", {}) if key in MODEL_RULES}
    of_ner = {"task.model.hidden": _list(_SIZE)} if task["name"] == "ner" else {}
    return RULES | (LM_RULES if "lm" in task else {}) | model | of_ner


def is_all(batches: Any) -> bool:
    """Whether ``trainer.limit_val_batches`` means all: 1 is a number of batches, 1.0 is all of them."""
    return isinstance(batches, float) and batches == 1


def _number(low: float, high: float, *, above: bool = False, below: bool = False) -> Rule:
    """A number between bounds; ``above`` and ``below`` leave the bound itself out."""
    left, right = ("(" if above else "["), (")" if below or math.isinf(high) else "]")

    def check(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            return False
        return (value > low if above else value >= low) and (value < high if below else value <= high)

    return f"a number in {left}{low:g}, {high:g}{right}", check


def _whole(low: int) -> Rule:
    return (
        f"a whole number of at least {low}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= low,
    )


def _choice(*choices: str) -> Rule:
    return f"one of {', '.join(choices)}", lambda value: value in choices


def _either(*rules: Rule) -> Rule:
    return " or ".join(text for text, _ in rules), lambda value: any(check(value) for _, check in rules)


def _optional(rule: Rule) -> Rule:
    text, check = rule
    return f"{text}, or null", lambda value: value is None or check(value)


def _list(rule: Rule, length: int | None = None) -> Rule:
    """Of that length, or of any but none."""
    text, check = rule
    return (
        f"a list of {length or 'one or more'}, each {text}",
        lambda value: (
            isinstance(value, list) and len(value) == (length or max(1, len(value))) and all(map(check, value))
        ),
    )


_FLAG: Rule = ("true or false", lambda value: isinstance(value, bool))
_TEXT: Rule = ("a text", lambda value: isinstance(value, str) and value != "")

LM_RULES: dict[str, Rule] = {
    "task.lm.init": _optional(_TEXT),
    "task.lm.softmax_epochs": _whole(0),
    "task.data.batch_size": _whole(1),
    "task.data.window": _whole(1),
    "task.data.vocabulary_size": _whole(4),
    "task.data.min_count": _whole(1),
    "task.model.n_samples": _whole(1),
    "task.model.dropout": _number(0, 1, below=True),
    "task.model.forget": _number(0, 1),
    "trainer.limit_val_batches": _either(("1.0 (all batches)", is_all), _whole(1)),
}
_RATE, _SIZE = _number(0, 1, below=True), _whole(1)
MODEL_RULES: dict[str, Rule] = {
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

RULES: dict[str, Rule] = {
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
