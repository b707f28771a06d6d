"""Figures of everything that was measured: the curves of a panel differ in ELMo alone, not in task, data or model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from elmo_tasks.config.identity import short_digest
from elmo_tasks.render.series import Curve, Panel, Point, point
from elmo_tasks.rows import describe
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.grouping import Group, inputs, words_read
from elmo_tasks.rows.grouping import groups as find_groups
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import differing

ELMO = ("elmo.", "bilm.")
Curves = Callable[[list[Group]], list[Point]]


def panels(groups: Iterable[Group], points: Curves, axis: str = "", *, repeat_baseline: bool = False) -> list[Panel]:
    """Panels of dev scores.

    Args:
        groups: runs that trained one model each.
        points: of the groups that make one curve.
        axis: the key of the configuration along which a curve runs; empty if each group has a curve of its own.
        repeat_baseline: whether the baseline does not depend on the axis, and is drawn at all points of the others.
    """
    comparable: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        comparable[comparable_key(group, axis)].append(group)
    kept = [(members, found) for members in comparable.values() if (found := _curves(members, points, axis))]
    if repeat_baseline:
        kept = [(members, [*_repeated(members, found), *found]) for members, found in kept]
    titles = _titles([members[0] for members, _ in kept], axis)
    return [_panel(title, members[0].first, found) for title, (members, found) in zip(titles, kept, strict=True)]


def _panel(title: str, row: Row, curves: list[Curve]) -> Panel:
    return Panel(title, row.metric.name, curves, describe.shared_tags(row))


def comparable_key(group: Group, axis: str = "") -> str:
    """A key that runs share if they can be compared: they differ in nothing but ELMo, the biLM and the axis."""
    aside = (axis, "words.path")  # the content of the file counts
    rest = {key: value for key, value in group.setting.items() if not key.startswith(ELMO) and key not in aside}
    row = group.first
    return short_digest([row.task, rest, row.data.digest, words_read(row), row.metric.name])


def trained_groups(rows: Rows) -> list[Group]:
    """Groups of runs of a task model of their own: no ensembles, no language models, no probe without training."""
    return find_groups(row for row in rows.finished if row.kind == "supervised")


def keys_text(keys: dict[str, Any]) -> str:
    """``elmo.lambda=1, trainer.patience=3``, as on the command line."""
    return ", ".join(f"{key}={_written(value)}" for key, value in keys.items())


def _written(value: Any) -> str:
    """A value as the command line takes it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short_text(keys: dict[str, Any]) -> str:
    """``layer_1, small, dropout 0.4``: the same as short as a figure needs it. A biLM's name stands for its sizes."""
    if "bilm.name" in keys:
        keys = {key: value for key, value in keys.items() if not key.startswith("bilm.options.")}
    names = {key: "" if key in ("elmo.mix", "bilm.name") else f"{key.rpartition('.')[2]} " for key in keys}
    return ", ".join(f"{names[key]}{_written(value)}" for key, value in keys.items())


def _curves(members: list[Group], points: Curves, axis: str) -> list[Curve]:
    lines: dict[str, list[Group]] = defaultdict(list)
    for group in members:
        elmo = {key: value for key, value in group.setting.items() if key.startswith(ELMO) and key != axis}
        read = inputs(group.first)
        lines[short_digest([elmo, read.bilm, read.warm])].append(group)
    ordered = sorted(lines.values(), key=lambda line: ["none", "input", "output", "both"].index(line[0].placement))
    drawn = [(line[0], at) for line in ordered if len(at := points(line)) > (1 if axis else 0)]
    names = _names([group for group, _ in drawn], axis)
    return [Curve(name, group.placement, at) for name, (group, at) in zip(names, drawn, strict=True)]


def _names(groups: list[Group], axis: str) -> list[str]:
    """Placements; curves of the same placement also show the keys in which they differ, or the biLM's digest."""
    places = ["baseline" if group.placement == "none" else group.placement for group in groups]
    digests = [f"biLM {str(inputs(group.first).bilm)[:4]}" for group in groups]
    return _told_apart(places, groups, digests, lambda key: key.startswith(ELMO) and key != axis)


def _repeated(members: list[Group], found: list[Curve]) -> list[Curve]:
    """The baseline at every x of the other curves."""
    baseline = next((group for group in members if group.placement == "none"), None)
    xs = sorted({p.x for curve in found for p in curve.points})
    return [] if baseline is None else [Curve("baseline", "none", [point(x, baseline.dev_scores) for x in xs])]


def _titles(groups: list[Group], axis: str) -> list[str]:
    """Task, data and items; equal titles also show the keys in which they differ, or the digest of the data."""
    titles = [f"{group.first.task}, {group.first.data.name}" for group in groups]
    if axis != "data.fraction":
        titles = [f"{title}, {describe.items(group.first)} items" for title, group in zip(titles, groups, strict=True)]
    digests = [f"data {group.first.data.digest[:4]}" for group in groups]
    return _told_apart(titles, groups, digests, lambda key: not key.startswith(ELMO) and key != axis)


def _told_apart(names: list[str], groups: list[Group], digests: list[str], counts: Callable[[str], bool]) -> list[str]:
    """The names; where some are equal, with the keys that count and in which they differ, or else with digests."""
    found = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        same = [i for i, other in enumerate(names) if other == name]
        for i, keys in zip(same, differing([groups[i].setting for i in same]), strict=True):
            text = _short_text({key: value for key, value in keys.items() if counts(key)})
            found[i] = f"{name}, {text or digests[i]}"
    return found
