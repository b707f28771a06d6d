"""How far a setting that was run is from its task's current defaults."""

from __future__ import annotations

import json
from typing import Any

from elmo_tasks.errors import UserError
from elmo_tasks.rows.grouping import Group
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import flat, scientific
from elmo_tasks.tables.panels import placement
from elmo_tasks.tables.settings import setting

SHOWN = ("data.name", "data.fraction", "scale.name", "elmo.placement", "elmo.mix", "elmo.lambda", "bilm.name")
"""Keys that have a column of their own, or a part in that of ELMo."""


def defaults(row: Row) -> dict[str, Any]:
    """The default configuration of a row's task, by dotted key; the row's own configuration for an unknown task."""
    try:
        usual = setting((f"task={row.task}", f"data={row.data.name}", f"scale={row.scale}"))
    except UserError:
        return flat(scientific(row.config, row.kind))
    return flat(scientific(usual.config, usual.kind))


def other_keys(group: Group) -> dict[str, Any]:
    """The keys in which a setting differs from its task's defaults and that have no column."""
    aside = ("elmo.", "bilm.") if placement(group) == "none" else ()
    found = _differing(group)
    return {key: value for key, value in found.items() if key not in SHOWN and not key.startswith(aside)}


def distance(group: Group) -> tuple[int, str]:
    """How far a setting is from its task's defaults, to sort by: in how many keys, and a name for ties."""
    return len(_differing(group)), group.first.run_id


def _differing(group: Group) -> dict[str, Any]:
    own, usual = group.setting, defaults(group.first)
    keys = sorted(own.keys() | usual.keys())
    return {key: own.get(key) for key in keys if json.dumps(own.get(key)) != json.dumps(usual.get(key))}
