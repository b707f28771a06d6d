"""The numbers of the figures: means and standard deviations over seeds, by panel and curve.

Dev scores throughout, which every row has; ensembles are left to the tables.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from elmo_tasks.report.groups import elmo_part, model, plugged, setting, unique_names
from elmo_tasks.report.rows import Row


@dataclass(frozen=True)
class Point:
    """Mean and sample standard deviation (0 for a single seed) of n seeds at x; both NaN without any (:func:`gap`)."""

    x: float
    mean: float
    sd: float
    n: int


@dataclass(frozen=True)
class Curve:
    """One line of a panel; ``placement`` is ``none`` for the baseline."""

    name: str
    placement: str
    points: list[Point]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    metric: str
    curves: list[Curve]


def point(x: float, values: list[float]) -> Point:
    """A point from the seeds' values."""
    return Point(x, statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0, len(values))


def gap(x: float) -> Point:
    """Where a number is still missing: a line breaks there and does not run straight over it."""
    return Point(x, math.nan, math.nan, 0)


def by_share(rows: Iterable[Row]) -> list[Panel]:
    """Dev score against the share of the training items in percent, of curves with two shares or more."""

    def curve(members: list[Row]) -> list[Point]:
        trains = [row["data"]["train"] for row in members]
        return _points([100 * train["used"] / train["original"] for train in trains], members)

    def finish(curves: list[Curve]) -> list[Curve]:
        return [curve for curve in curves if len(curve.points) > 1]

    return _panels(rows, curve, finish, whole_setting=False, label=_plainly)


def by_epoch(rows: Iterable[Row]) -> list[Panel]:
    """Dev score at the end of each epoch, as far as every seed got: patience ends some runs sooner than others."""

    def curve(members: list[Row]) -> list[Point]:
        runs = [{p["epoch"]: p["dev"][row["metric"]] for p in row.get("curve", ())} for row in members]
        return [point(x, [run[x] for run in runs]) for x in sorted(set.intersection(*map(set, runs)))]

    return _panels(rows, curve, lambda curves: curves, whole_setting=True, label=_plainly)


def by_lambda(rows: Iterable[Row]) -> list[Panel]:
    """Dev score against lambda for learned mixes with two lambdas or more, and the baseline at every lambda."""
    rows = [row for row in _runs(rows) if row["elmo"]["placement"] == "none" or row["elmo"]["mix"] == "scalar"]

    def curve(members: list[Row]) -> list[Point]:
        if members[0]["elmo"]["placement"] == "none":
            return _points([0.0] * len(members), members)  # lambda says nothing to a baseline
        return _points([float(row["config"]["elmo"]["lambda"]) for row in members], members)

    def finish(curves: list[Curve]) -> list[Curve]:
        swept = [c for c in curves if c.placement != "none" and len(c.points) > 1]
        lambdas = sorted({p.x for c in swept for p in c.points})
        flat = [
            Curve(c.name, c.placement, [replace(p, x=x) for x in lambdas for p in c.points])
            for c in curves
            if c.placement == "none"
        ]
        return flat + swept if swept else []

    return _panels(rows, curve, finish, whole_setting=True, label=_placed, without="lambda")


@dataclass(frozen=True)
class Mix:
    """A learned mix: means over n seeds of s by layer, and of gamma."""

    name: str
    place: str
    s: list[float]
    gamma: float
    n: int


def mixes(rows: Iterable[Row], place: str) -> list[Mix]:
    """Layer weights at ``input`` or ``output``, one for each setting with learned weights there."""
    members: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in _runs(rows):
        if row["elmo"]["mix"] == "scalar" and row["elmo"]["weights"].get(place, {}).get("s"):
            size = str(len(row["elmo"]["weights"][place]["s"]))
            members[*setting(row), plugged(row), row["data"]["digest"], model(row), elmo_part(row), size].append(row)
    found = sorted(members)
    names = unique_names([_mix_names(key) for key in found])
    return [_mix(name, place, members[key]) for name, key in zip(names, found, strict=True)]


def _mix(name: str, place: str, rows: list[Row]) -> Mix:
    weights = [row["elmo"]["weights"][place] for row in rows]
    s = [statistics.mean(layer) for layer in zip(*(w["s"] for w in weights), strict=True)]
    return Mix(name, place, s, statistics.mean(w["gamma"] for w in weights), len(rows))


def _mix_names(key: tuple[str, ...]) -> list[str]:
    task, data, scale, used, entered, *rest = key
    where = entered.split(",")[0]
    return [
        task,
        f"{task}, {where}",
        f"{task}, {data}, {where}",
        f"{task}, {data}, {used}, {where}",
        f"{task}, {data}, {used}, {entered}",
        f"{task}, {data}, {scale}, {used}, {entered}",
        f"{task}, {data}, {scale}, {used}, {entered} ({' '.join(part[:4] for part in rest)})",
    ]


def _runs(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["elmo"] is not None and "ensemble" not in row]


def _points(xs: list[float], rows: list[Row]) -> list[Point]:
    """One point for each different x, from the dev scores of the rows that have it."""
    at: dict[float, list[float]] = defaultdict(list)
    for x, row in zip(xs, rows, strict=True):
        at[x].append(row["scores"]["dev"][row["metric"]])
    return [point(x, at[x]) for x in sorted(at)]


def _plainly(row: Row) -> list[str]:
    placement = "baseline" if row["elmo"]["placement"] == "none" else row["elmo"]["placement"]
    entered = "baseline" if placement == "baseline" else plugged(row)
    return [placement, entered, f"{entered} ({elmo_part(row)[:4]})"]


def _placed(row: Row) -> list[str]:
    placement, *_ = _plainly(row)
    return [placement, f"{placement} ({elmo_part(row, without='lambda')[:4]})"]


def _panels(
    rows: Iterable[Row],
    points: Callable[[list[Row]], list[Point]],
    finish: Callable[[list[Curve]], list[Curve]],
    *,
    whole_setting: bool,
    label: Callable[[Row], list[str]],
    without: str = "",
) -> list[Panel]:
    """Panels of one task, data and model each; curves in them differ in ELMo alone.

    Args:
        rows: any.
        points: of the rows that make one curve.
        finish: chooses among the curves of a panel; a panel without curves is not made.
        whole_setting: whether another number of training items is another panel.
        label: names of a curve, short to long.
        without: a key of ELMo's configuration along which a curve runs.
    """
    frames: dict[tuple[str, ...], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in _runs(rows):
        task, data, scale, used = setting(row)
        where = (task, data, scale, used if whole_setting else "")
        frames[*where, row["data"]["digest"], model(row), row["metric"]][elmo_part(row, without=without)].append(row)
    kept: dict[tuple[str, ...], list[Curve]] = {}
    for key in sorted(frames):
        members = sorted(frames[key].values(), key=lambda part: (_order(part[0]), plugged(part[0])))
        names = unique_names([label(part[0]) for part in members])
        curves = [
            Curve(name, part[0]["elmo"]["placement"], points(part)) for name, part in zip(names, members, strict=True)
        ]
        if chosen := finish([curve for curve in curves if curve.points]):
            kept[key] = chosen
    titles = _unique_titles([_titles(key) for key in kept])
    return [Panel(title, key[-1], curves) for title, (key, curves) in zip(titles, kept.items(), strict=True)]


def _unique_titles(candidates: list[list[str]]) -> list[str]:
    """A title for each panel out of its candidates, short to long; only those that clash are lengthened."""
    titles = [names[0] for names in candidates]
    for longer in zip(*(names[1:] for names in candidates), strict=True):
        clash = {title for title in titles if titles.count(title) > 1}
        titles = [long if title in clash else title for title, long in zip(titles, longer, strict=True)]
    return titles


def _titles(key: tuple[str, ...]) -> list[str]:
    task, data, scale, used, *rest = key
    items = f", {used} items" if used else ""
    return [
        f"{task}, {data}{items}",
        f"{task}, {data}, {scale}{items}",
        f"{task}, {data}, {scale}{items} ({' '.join(part[:4] for part in rest[:2])})",
    ]


def _order(row: Row) -> int:
    return ["none", "input", "output", "both"].index(row["elmo"]["placement"])
