"""Figures of everything that was measured: the curves of a panel differ in ELMo alone, not in task, data or model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from elmo_tasks.config.identity import short_digest
from elmo_tasks.render.series import Curve, Panel, Point, point
from elmo_tasks.rows import describe
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.schema import Row
from elmo_tasks.rows.settings import Setting, differing

ELMO = ("elmo.", "bilm.")
Curves = Callable[[list[Setting]], list[Point]]


def panels(
    settings: Iterable[Setting], points: Curves, axis: str = "", *, repeat_baseline: bool = False
) -> list[Panel]:
    """Panels of dev scores.

    Args:
        settings: runs that trained one model each.
        points: of the settings that make one curve.
        axis: the key of the configuration along which a curve runs; empty if each setting has a curve of its own.
        repeat_baseline: whether the baseline does not depend on the axis, and is drawn at all points of the others.
    """
    comparable: dict[str, list[Setting]] = defaultdict(list)
    for setting in settings:
        comparable[comparable_key(setting, axis)].append(setting)
    kept = [(members, found) for members in comparable.values() if (found := _curves(members, points, axis))]
    if repeat_baseline:
        kept = [(members, [*_repeated(members, found), *found]) for members, found in kept]
    titles = _titles([members[0] for members, _ in kept], axis)
    return [_panel(title, members[0].first, found) for title, (members, found) in zip(titles, kept, strict=True)]


def _panel(title: str, row: Row, curves: list[Curve]) -> Panel:
    return Panel(title, row.metric.name, curves, describe.shared_tags(row))


def comparable_key(setting: Setting, axis: str = "") -> str:
    """A key that runs share if they can be compared: they differ in nothing but ELMo, the biLM and the axis."""
    aside = (axis, "words.path")  # the content of the file counts
    rest = {key: value for key, value in setting.keys.items() if not key.startswith(ELMO) and key not in aside}
    row = setting.first
    return short_digest([row.task, rest, row.data.digest, row.words, row.metric.name])


def trained_settings(rows: Rows) -> list[Setting]:
    """Runs of a task model of their own: no ensembles, no language models, no probe without training."""
    return [setting for setting in rows.settings if setting.first.kind == "supervised"]


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


def _curves(members: list[Setting], points: Curves, axis: str) -> list[Curve]:
    lines: dict[str, list[Setting]] = defaultdict(list)
    for setting in members:
        elmo = {key: value for key, value in setting.keys.items() if key.startswith(ELMO) and key != axis}
        read = setting.first.inputs
        lines[short_digest([elmo, read.bilm, read.warm])].append(setting)
    ordered = sorted(lines.values(), key=lambda line: ["none", "input", "output", "both"].index(line[0].placement))
    drawn = [(line[0], at) for line in ordered if len(at := points(line)) > (1 if axis else 0)]
    names = _names([setting for setting, _ in drawn], axis)
    return [Curve(name, setting.placement, at) for name, (setting, at) in zip(names, drawn, strict=True)]


def _names(settings: list[Setting], axis: str) -> list[str]:
    """Placements; curves of the same placement also show the keys in which they differ, or the biLM's digest."""
    places = ["baseline" if setting.placement == "none" else setting.placement for setting in settings]
    digests = [f"biLM {str(setting.first.inputs.bilm)[:4]}" for setting in settings]
    return _told_apart(places, settings, digests, lambda key: key.startswith(ELMO) and key != axis)


def _repeated(members: list[Setting], found: list[Curve]) -> list[Curve]:
    """The baseline at every x of the other curves."""
    baseline = next((setting for setting in members if setting.placement == "none"), None)
    xs = sorted({p.x for curve in found for p in curve.points})
    return (
        [] if baseline is None else [Curve("baseline", "none", [point(x, baseline.scores("dev").values()) for x in xs])]
    )


def _titles(settings: list[Setting], axis: str) -> list[str]:
    """Task, data and items; equal titles also show the keys in which they differ, or the digest of the data."""
    titles = [f"{setting.first.task}, {setting.first.data.name}" for setting in settings]
    if axis != "data.fraction":
        titles = [
            f"{title}, {describe.items(setting.first)} items" for title, setting in zip(titles, settings, strict=True)
        ]
    digests = [f"data {setting.first.data.digest[:4]}" for setting in settings]
    return _told_apart(titles, settings, digests, lambda key: not key.startswith(ELMO) and key != axis)


def _told_apart(
    names: list[str], settings: list[Setting], digests: list[str], counts: Callable[[str], bool]
) -> list[str]:
    """The names; where some are equal, with the keys that count and in which they differ, or else with digests."""
    found = list(names)
    for name in {name for name in names if names.count(name) > 1}:
        same = [i for i, other in enumerate(names) if other == name]
        for i, keys in zip(same, differing([settings[i].keys for i in same]), strict=True):
            text = _short_text({key: value for key, value in keys.items() if counts(key)})
            found[i] = f"{name}, {text or digests[i]}"
    return found
