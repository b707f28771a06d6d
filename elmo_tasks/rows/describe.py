"""A row in a few words, as tables and pages show it."""

from __future__ import annotations

from elmo_tasks.rows.schema import FailedRow, LanguageModelRow, Row

TAGS = ("task", "data", "scale", "placement")
"""What a page's filters choose by, beside the seed and the status."""


def tags(row: Row | FailedRow) -> dict[str, str]:
    """What a page's filters choose a row by."""
    config = row.config
    data, elmo = config.get("data"), config.get("elmo")
    placement = elmo.get("placement") if isinstance(elmo, dict) and row.kind != "language_model" else None
    name = data.get("name") if isinstance(data, dict) else None
    return {"task": row.task, "data": str(name or "-"), "scale": row.scale, "placement": str(placement or "-")}


def shared_tags(row: Row) -> dict[str, str]:
    """The same for what shows several placements, and is chosen by any of them."""
    return {key: value for key, value in tags(row).items() if key != "placement"}


def items(row: Row) -> str:
    """How many training items: ``1,404 of 14,041``, or the positions of a language model's epoch."""
    if isinstance(row, LanguageModelRow):
        return f"{row.language_model.positions.get('train', 0):,} positions"
    train = row.data.items.get("train")
    if train is None:
        return "-"
    return f"{train.used:,}" + ("" if train.used == train.original else f" of {train.original:,}")


def elmo(row: Row) -> str:
    """How ELMo is used: ``none``, or placement, mix, lambda, and the biLM; ``-`` for a language model.

    The bundled mini is not named. Weights of one's own have four digits of their digest beside the name.
    """
    if row.elmo is None:
        return "-"
    if row.elmo.placement == "none":
        return "none" + _members(row)
    text = f"{row.elmo.placement}, {row.elmo.mix}"
    if row.elmo.mix == "scalar":
        text += f", lambda {row.config['elmo']['lambda']:g}"
    if row.bilm is not None and has_own_weights(row):
        text += f", {row.bilm.name} {row.bilm.digest[:4]}"
    elif row.bilm is not None and row.bilm.name != "mini":
        text += f", {row.bilm.name}"
    return text + _members(row)


def has_own_weights(row: Row) -> bool:
    """Whether the biLM was read from a place of the user's, be it under the name of a bundled one."""
    return row.bilm is not None and row.config["bilm"].get("path") is not None


def _members(row: Row) -> str:
    return f", ensemble of {len(row.members)}" if row.members else ""
