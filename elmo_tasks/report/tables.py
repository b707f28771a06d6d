"""The tables of the README: scores, mixes, layer store."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from elmo_tasks.report.grid import Grid
from elmo_tasks.report.groups import ensemble, groups, plugged
from elmo_tasks.report.rows import Row, metrics

_SETTING = ["task", "data", "scale", "training items", "ELMo"]


def results_table(rows: Iterable[Row]) -> Grid:
    """One line for each setting that was run, mean and standard deviation over its seeds."""
    lines = []
    for setting, members in groups(row for row in rows if row["elmo"] is not None):
        entered = plugged(members[0]) + ensemble(members[0])
        shown = [*setting, entered, str(len(members)), ", ".join(metrics(members[0]))]
        lines.append([*shown, _scores(members, "dev"), _scores(members, "test")])
    return Grid("Scores, mean ± standard deviation over seeds", [*_SETTING, "seeds", "metric", "dev", "test"], lines)


def mix_table(rows: Iterable[Row]) -> Grid:
    """What the mixes learned: softmax weights of the layers and gamma, means over seeds."""
    lines = []
    for setting, members in groups(row for row in rows if row["elmo"] is not None):
        for place in members[0]["elmo"]["weights"]:
            weights = [row["elmo"]["weights"][place] for row in members]
            s = ", ".join(f"{statistics.mean(layer):.3f}" for layer in zip(*(w["s"] for w in weights), strict=True))
            gamma = f"{statistics.mean(w['gamma'] for w in weights):.3f}"
            lines.append([*setting, plugged(members[0]), place, s, gamma])
    return Grid("What the mixes learned", [*_SETTING, "place", "s (layer 0, 1, ...)", "gamma"], lines)


def layers_table(rows: Iterable[Row]) -> Grid:
    """What the layer store saves: runs that had layers to compute, and runs that read them all."""
    lines = []
    for setting, members in groups(row for row in rows if row["elmo"] and row["bilm"] and "ensemble" not in row):
        cells = [*setting, plugged(members[0])]
        for kind, wanted in (("computed", True), ("read", False)):
            part = [row for row in members if (row["layers"]["computed"] > 0) == wanted]
            tokens = f", {statistics.mean(row['layers'][kind] for row in part):,.0f} tokens" if part else ""
            cells.append(f"{len(part)} run{'s' * (len(part) != 1)}{tokens}")
            cells.append(f"{statistics.mean(row['seconds']['layers'] for row in part):.1f}" if part else "-")
        lines.append(cells)
    title = "Seconds until the layers were there (reading the data included), means"
    return Grid(title, [*_SETTING, "computed layers", "seconds", "read all", "seconds"], lines)


def _scores(rows: Sequence[Row], split: str) -> str:
    if any(split not in row["scores"] for row in rows):
        return "-"
    return ", ".join(_mean([row["scores"][split][name] for row in rows]) for name in metrics(rows[0]))


def _mean(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"
