"""What a row must hold before any table, figure or page counts it: one check for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.results import fingerprint

Row = dict[str, Any]

# What is reported beside the main score.
_BESIDE = {
    "lm": ("forward", "backward"),
    "squad": ["exact_match"],
    "coref": ["muc_f1", "b_cubed_f1", "ceaf_e_f1"],
}

# The main score of this project's metrics; a row with another one was not written by its task.
MAIN_SCORES = {
    "elmo_tasks.metrics.accuracy.Accuracy": "accuracy",
    "elmo_tasks.metrics.accuracy.TokenAccuracy": "accuracy",
    "elmo_tasks.metrics.coref.CorefF1": "f1",
    "elmo_tasks.metrics.perplexity.Perplexity": "perplexity",
    "elmo_tasks.metrics.span_f1.SpanF1": "f1",
    "elmo_tasks.metrics.squad.SquadScore": "f1",
    "elmo_tasks.metrics.srl_f1.SrlF1": "f1",
    "elmo_tasks.metrics.wsd.SenseF1": "f1",
}


def metrics(row: Row) -> list[str]:
    """The scores to report: the one that chose the checkpoint first."""
    return [row["metric"], *_BESIDE.get(row["task"], ())]


def moment(row: Row) -> tuple[datetime, str]:
    """When a row was written; of two rows for one place the later one counts, and of one second the later name."""
    return datetime.fromisoformat(row["created"]), row["run_id"]


Rule = tuple[str, Callable[[Any], bool]]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300  # nor NaN


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _name(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and value != ""


def _time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _mix_weights(value: Any) -> bool:
    return _mapping(value) and all(
        _mapping(mix) and isinstance(mix.get("s"), list) and all(map(_number, mix["s"])) and _number(mix.get("gamma"))
        for mix in value.values()
    )


def _curve(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_dev_scoring, value))


def _dev_scoring(value: Any) -> bool:
    return (
        _mapping(value)
        and _count(value.get("epoch"))
        and _count(value.get("step"))
        and _mapping(value.get("dev"))
        and all(map(_number, value["dev"].values()))
        and _mix_weights(value.get("elmo", {}))
    )


FINITE: Rule = ("a finite number", _number)
PERCENT: Rule = ("a number from 0 to 100", lambda value: _number(value) and 0 <= value <= 100)
NAME: Rule = ("a printable name", _name)
COUNT: Rule = ("a whole number, 0 or more", _count)
MAPPING: Rule = ("a mapping", _mapping)

RULES: dict[str, Rule] = {
    "run_id": NAME,
    "task": NAME,
    "created": ("an ISO time with its zone", _time),
    "status": ("finished or failed", lambda value: value in ("finished", "failed")),
}
OF_FINISHED: dict[str, Rule] = {
    "commit": ("a name or null", lambda value: value is None or _name(value)),
    "scale": NAME,
    "data.name": NAME,
    "data.digest": NAME,
    "metric": NAME,
    "scores.dev": MAPPING,
    "seconds.layers": FINITE,
    "layers.computed": COUNT,
    "layers.read": COUNT,
    "config.task": MAPPING,
    "elmo": ("a mapping or null", lambda value: value is None or _mapping(value)),
    "bilm": ("a mapping or null", lambda value: value is None or _mapping(value)),
}
POSITIVE: Rule = ("a whole number, 1 or more", lambda value: _count(value) and value > 0)
OF_TASK: dict[str, Rule] = {"data.train.original": POSITIVE, "data.train.used": POSITIVE}
OF_TEXT: dict[str, Rule] = {  # of a biLM's training
    "data.train.positions": POSITIVE,
    "data.vocabulary": POSITIVE,
    "config.task.lm.text": NAME,
}
OF_START: dict[str, Rule] = {
    "start.init": NAME,
    "before.perplexity": FINITE,
    "exported.folder": NAME,
    "exported.digest": NAME,
}
OF_ELMO: dict[str, Rule] = {
    "elmo.placement": ("none, input, output or both", lambda value: value in ("none", "input", "output", "both")),
    "elmo.mix": NAME,
    "elmo.weights": ("finite s and gamma for each place", _mix_weights),
    "config.elmo.placement": NAME,
    "config.elmo.lambda": FINITE,
    "config.words": MAPPING,
    **{f"config.trainer.{key}": ("set", lambda value: True) for key in ("max_epochs", "max_steps", "patience")},
    "config.trainer.precision": ("set", lambda value: True),
}
OF_BILM: dict[str, Rule] = {"bilm.name": NAME, "bilm.digest": NAME, "bilm.state": NAME}
OF_ONE: dict[str, Rule] = {"seed": COUNT}
OF_RUN: dict[str, Rule] = {
    "epochs": COUNT,
    "best_epoch": COUNT,
    "curve": ("points with epoch, step and finite dev scores", _curve),
}
OF_ENSEMBLE: dict[str, Rule] = {
    "ensemble.seeds": ("a list of whole numbers", lambda value: isinstance(value, list) and all(map(_count, value))),
}

_MISSING = object()


def check(row: Row, path: Path) -> None:
    """Raise a UserError that names the first field that tables, figures or the page cannot rely on."""
    try:
        json.dumps(row, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(f"{path}: holds text that is no Unicode") from error
    try:
        fingerprint(row)  # as the groups are found by
    except OverflowError as error:
        raise UserError(f"{path}: holds a number that is too large") from error
    _apply(RULES, row, path)
    if row["status"] == "failed":
        return
    _apply(OF_FINISHED, row, path)
    _apply(OF_ENSEMBLE if "ensemble" in row else OF_ONE, row, path)
    if _trained(row):
        _apply(OF_RUN, row, path)
    if row["elmo"] is None:
        _apply(OF_TEXT | (OF_START if row.get("start") is not None else {}), row, path)
    else:
        _apply(OF_TASK | OF_ELMO, row, path)
        _check_places(row, path)
        if row["elmo"]["placement"] != "none" or row["bilm"] is not None:
            _apply(OF_BILM, row, path)
    _check_scores(row, path)


def _trained(row: Row) -> bool:
    """Whether the run trained a model: neither an ensemble nor a probe without one, such as task=wsd."""
    return "ensemble" not in row and "fit" in row["seconds"]


def _check_scores(row: Row, path: Path) -> None:
    """The main score is that of the task's metric; scores are percentages but for perplexities."""
    of_task = row["config"]["task"].get("metric")
    target = of_task.get("_target_") if isinstance(of_task, dict) else None
    expected = MAIN_SCORES.get(str(target), row["metric"])
    if row["metric"] != expected:
        raise UserError(f"{path}: metric must be {expected}, that of the row's task, found {row['metric']!r:.60}")
    rule = FINITE if row["metric"] == "perplexity" else PERCENT
    for split, scores in row["scores"].items():
        if not isinstance(scores, dict):
            raise UserError(f"{path}: scores.{split} must be a mapping, found {scores!r:.60}")
        _apply(dict.fromkeys(metrics(row), rule), scores, path, before=f"scores.{split}.")
        _apply({split: MAPPING}, {split: {}} | row["data"], path, before="data.")
    for i, point in enumerate(row["curve"] if _trained(row) else ()):
        _apply({row["metric"]: rule}, point["dev"], path, before=f"curve {i}.dev.")


def _check_places(row: Row, path: Path) -> None:
    placement = row["elmo"]["placement"]
    expected = {"none": [], "both": ["input", "output"]}.get(placement, [placement])
    if row["config"]["elmo"]["placement"] != placement:
        raise UserError(f"{path}: config.elmo.placement must be {placement}, as elmo.placement is")
    found = sorted(row["elmo"]["weights"])
    if found != (expected if _trained(row) else []):
        raise UserError(f"{path}: elmo.weights must have the places of {placement}, found {found}")


def _apply(rules: dict[str, Rule], row: Row, path: Path, before: str = "") -> None:
    for key, (expected, test) in rules.items():
        value: Any = row
        for part in [key] if before else key.split("."):
            value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
        if value is _MISSING:
            raise UserError(f"{path}: {before}{key} is missing")
        if not test(value):
            raise UserError(f"{path}: {before}{key} must be {expected}, found {value!r:.60}")
