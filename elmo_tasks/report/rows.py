"""The rows of a report: what can be relied on is counted, the rest is named and left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.results import fingerprint, read_row

Row = dict[str, Any]

# What is reported beside the main score.
_BESIDE = {
    "lm": ("forward", "backward"),
    "squad": ["exact_match"],
    "coref": ["muc_f1", "b_cubed_f1", "ceaf_e_f1"],
}


@dataclass(frozen=True)
class Rows:
    """What a folder holds.

    Args:
        finished: rows that have every field that a table or a figure reads, by file name.
        failed: rows of failed runs, by file name.
        left_out: a sentence for each file that is in neither.
    """

    finished: list[Row]
    failed: list[Row]
    left_out: list[str]

    @property
    def note(self) -> str:
        """How many files were left out, in a sentence; empty if none."""
        n = len(self.left_out)
        return f"{n} file{'s' * (n > 1)} left out as no usable row{'s' * (n > 1)}." if n else ""


def read(folder: str | Path) -> Rows:
    """Read and check the rows of a folder.

    Raises:
        UserError: if there is none.
    """
    paths = sorted(Path(folder).glob("*.json"))
    if not paths:
        raise UserError(f"{folder}: no rows (*.json) here; a run writes its row into results.dir")
    rows = Rows([], [], [])
    first: dict[str, Path] = {}
    for path in paths:
        try:
            row = read_row(path)
            check(row, path)
            if row["run_id"] in first:
                raise UserError(f"{path}: the same run as {first[row['run_id']]}")
        except UserError as error:
            rows.left_out.append(str(error))
            continue
        first[row["run_id"]] = path
        (rows.failed if row["status"] == "failed" else rows.finished).append(row)
    if not rows.finished and not rows.failed:
        raise UserError(f"{folder}: none of {len(paths)} files is a usable row; the first: {rows.left_out[0]}")
    return rows


def metrics(row: Row) -> list[str]:
    """The scores to report: the one that chose the checkpoint first."""
    return [row["metric"], *_BESIDE.get(row["task"], ())]


Rule = tuple[str, Callable[[Any], bool]]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300  # nor NaN


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _name(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and value != ""


def _mapping(value: Any) -> bool:
    return isinstance(value, dict)


def _mix_weights(value: Any) -> bool:
    return _mapping(value) and all(
        _mapping(mix) and isinstance(mix.get("s"), list) and all(map(_number, mix["s"])) and _number(mix.get("gamma"))
        for mix in value.values()
    )


def _curve(value: Any) -> bool:
    return isinstance(value, list) and all(
        _mapping(point)
        and _count(point.get("epoch"))
        and _mapping(point.get("dev"))
        and all(map(_number, point["dev"].values()))
        and _mix_weights(point.get("elmo", {}))
        for point in value
    )


NAME: Rule = ("a printable name", _name)
COUNT: Rule = ("a whole number, 0 or more", _count)
MAPPING: Rule = ("a mapping", _mapping)

RULES: dict[str, Rule] = {
    "run_id": NAME,
    "task": NAME,
    "status": ("finished or failed", lambda value: value in ("finished", "failed")),
}
OF_FINISHED: dict[str, Rule] = {
    "seed": ("a whole number or null", lambda value: value is None or _count(value)),
    "scale": NAME,
    "data.name": NAME,
    "data.digest": NAME,
    "metric": NAME,
    "scores.dev": MAPPING,
    "seconds.layers": ("a finite number", _number),
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
OF_START: dict[str, Rule] = {"start.init": NAME, "before.perplexity": ("a finite number", _number)}
OF_ELMO: dict[str, Rule] = {
    "elmo.placement": ("none, input, output or both", lambda value: value in ("none", "input", "output", "both")),
    "elmo.mix": NAME,
    "elmo.weights": ("finite s and gamma for each place", _mix_weights),
    "config.elmo.placement": NAME,
    "config.elmo.lambda": ("a finite number", _number),
    "config.words": MAPPING,
    **{f"config.trainer.{key}": ("set", lambda value: True) for key in ("max_epochs", "max_steps", "patience")},
    "config.trainer.precision": ("set", lambda value: True),
}
OF_BILM: dict[str, Rule] = {"bilm.name": NAME, "bilm.digest": NAME, "bilm.state": NAME}
OF_RUN: dict[str, Rule] = {
    "epochs": COUNT,
    "best_epoch": COUNT,
    "curve": ("points with epoch and finite dev scores", _curve),
}
OF_ENSEMBLE: dict[str, Rule] = {"ensemble.seeds": ("a list", lambda value: isinstance(value, list))}

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
    if "ensemble" in row:
        _apply(OF_ENSEMBLE, row, path)
    elif _trained(row):
        _apply(OF_RUN, row, path)
    if row["elmo"] is None:
        _apply(OF_TEXT | (OF_START if row.get("start") is not None else {}), row, path)
    else:
        _apply(OF_TASK | OF_ELMO, row, path)
        _check_places(row, path)
        if row["elmo"]["placement"] != "none" or row["bilm"] is not None:
            _apply(OF_BILM, row, path)
    finite: Rule = ("a finite number", _number)
    points = [("scores." + split, scores) for split, scores in row["scores"].items()]
    for key, scores in points + [(f"curve {i}.dev", point["dev"]) for i, point in enumerate(row.get("curve", ()))]:
        if not isinstance(scores, dict):
            raise UserError(f"{path}: {key} must be a mapping, found {scores!r:.60}")
        wanted = metrics(row) if key.startswith("scores.") else [row["metric"]]
        _apply({name: finite for name in wanted}, scores, path, before=f"{key}.")


def _trained(row: Row) -> bool:
    """Whether the run trained a model: neither an ensemble nor a probe without one, such as task=wsd."""
    return "ensemble" not in row and "fit" in row["seconds"]


def _check_places(row: Row, path: Path) -> None:
    placement = row["elmo"]["placement"]
    expected = {"none": [], "both": ["input", "output"]}.get(placement, [placement])
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
