"""Which rows belong together, and what they are called."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable

from elmo_tasks.report.check import Row
from elmo_tasks.results import elmo_in_force, fingerprint, task_in_force

Setting = tuple[str, str, str, str]
"""Task, name of the data, scale, training items: the columns that every table begins with."""


def groups(rows: Iterable[Row]) -> list[tuple[Setting, list[Row]]]:
    """Rows that differ in nothing but their seed, in order of what is shown of them.

    Data and biLM count by their digests and the rest by the configuration, so that other files, weights or sizes under
    the same name are another line.
    """
    found: dict[tuple[Setting, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[setting(row), _hidden(row)].append(row)
    return [(shown, found[shown, hidden]) for shown, hidden in sorted(found)]


def place(row: Row) -> tuple[object, ...]:
    """What two rows have in common that cannot both count: a group of :func:`groups` and a seed (or members)."""
    if row["status"] == "failed" or row["elmo"] is None:  # no part of any mean
        return (row["run_id"],)
    seeds = row["ensemble"]["seeds"] if "ensemble" in row else [row["seed"]]
    return setting(row), _hidden(row), tuple(sorted(seeds))


def _hidden(row: Row) -> str:
    """What tells apart rows of one :func:`setting`, beginning with what is shown of it."""
    shown = f"{plugged(row)}{ensemble(row)}"
    return f"{shown} {row['data']['digest']} {row['metric']} {_bilm(row)} {_cell(row)} {_sizes(row)}"


def setting(row: Row) -> Setting:
    """What every table says of a row first."""
    train = row["data"]["train"]
    if row["elmo"] is None:
        return row["task"], row["data"]["name"], row["scale"], f"{train['positions']:,} positions"
    used = f"{train['used']:,}" + ("" if train["used"] == train["original"] else f" of {train['original']:,}")
    return row["task"], row["data"]["name"], row["scale"], used


def plugged(row: Row) -> str:
    """How ELMo enters: ``none``, or placement, mix, lambda, and biLM and state if not the usual ones."""
    elmo = row["elmo"]
    if elmo["placement"] == "none":
        return "none"
    alone = " alone" if row["config"]["words"]["name"] == "none" else ""
    text = f"{elmo['placement']}{alone}, {elmo['mix']}"
    if elmo["mix"] == "scalar":
        text += f", lambda {row['config']['elmo']['lambda']:g}"
    if row["config"]["elmo"].get("gamma") == "one":
        text += ", gamma 1"
    usual = {"name": "mini", "state": "reset"}
    return ", ".join([text, *(row["bilm"][key] for key in usual if row["bilm"][key] != usual[key])])


def ensemble(row: Row) -> str:
    """``, ensemble of N``, or nothing."""
    return f", ensemble of {len(row['ensemble']['seeds'])}" if "ensemble" in row else ""


def model(row: Row) -> str:
    """Fingerprint of what a configuration says of task model, word vectors and schedule, ELMo aside."""
    config = row["config"]
    whole = task_in_force(config["task"])
    task = {key: value for key, value in whole.items() if key not in ("elmo", "data")}  # the digest counts
    schedule = [config["trainer"][key] for key in ("max_epochs", "max_steps", "patience", "precision")]
    return fingerprint({"task": task, "words": config["words"], "schedule": schedule})


def elmo_part(row: Row, *, without: str = "") -> str:
    """Fingerprint of how ELMo enters and of the biLM; ``without`` leaves a key of the configuration out."""
    if row["elmo"]["placement"] == "none":
        return fingerprint({})
    part = {key: value for key, value in elmo_in_force(row["config"]["elmo"]).items() if key != without}
    return fingerprint({"elmo": part, "bilm": row["bilm"]})


def unique_names(candidates: list[list[str]]) -> list[str]:
    """A name for each thing out of its candidates, short to long: the first length at which all differ.

    The last candidate is taken where none does.
    """
    for names in zip(*candidates, strict=True):
        if len(set(names)) == len(names):
            return list(names)
    return [names[-1] for names in candidates]


def _cell(row: Row) -> str:
    return f"{model(row)} {fingerprint({'elmo': elmo_in_force(row['config']['elmo'])})}"


def _bilm(row: Row) -> str:
    bilm, of_config = row["bilm"] or {}, (row["bilm"] and row["config"].get("bilm")) or {}
    precision = of_config.get("precision", "float32")  # the only one before there was a choice
    return f"{bilm.get('digest')} {json.dumps([bilm.get('dtype'), bilm.get('warm'), precision])}"


def _sizes(row: Row) -> str:
    return json.dumps({place: len(mix["s"]) for place, mix in row["elmo"]["weights"].items()}, sort_keys=True)
