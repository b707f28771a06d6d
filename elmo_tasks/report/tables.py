"""The tables of the README: scores, mixes, layer store."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from elmo_tasks.report.check import Row, metrics
from elmo_tasks.report.grid import Grid
from elmo_tasks.report.groups import ensemble, groups, plugged, setting

_SETTING = ["task", "data", "scale", "training items", "ELMo"]


def results_table(rows: Iterable[Row]) -> Grid:
    """One line for each setting that was run, mean and standard deviation over its seeds."""
    lines = []
    for shown, members in groups(row for row in rows if row["elmo"] is not None):
        entered = plugged(members[0]) + ensemble(members[0])
        cells = [*shown, entered, str(len(members)), ", ".join(metrics(members[0]))]
        lines.append([*cells, _scores(members, "dev"), _scores(members, "test")])
    return Grid("Scores, mean ± standard deviation over seeds", [*_SETTING, "seeds", "metric", "dev", "test"], lines)


def mix_table(rows: Iterable[Row]) -> Grid:
    """What the mixes learned: softmax weights of the layers and gamma, means over seeds."""
    lines = []
    for shown, members in groups(row for row in rows if row["elmo"] is not None):
        for place in members[0]["elmo"]["weights"]:
            weights = [row["elmo"]["weights"][place] for row in members]
            s = ", ".join(f"{statistics.mean(layer):.3f}" for layer in zip(*(w["s"] for w in weights), strict=True))
            gamma = f"{statistics.mean(w['gamma'] for w in weights):.3f}"
            lines.append([*shown, plugged(members[0]), place, s, gamma])
    return Grid("What the mixes learned", [*_SETTING, "place", "s (layer 0, 1, ...)", "gamma"], lines)


def layers_table(rows: Iterable[Row]) -> Grid:
    """What the layer store saves: runs that had layers to compute, and runs that read them all."""
    lines = []
    for shown, members in groups(row for row in rows if row["elmo"] and row["bilm"] and "ensemble" not in row):
        cells = [*shown, plugged(members[0])]
        for kind, wanted in (("computed", True), ("read", False)):
            part = [row for row in members if (row["layers"]["computed"] > 0) == wanted]
            tokens = f", {statistics.mean(row['layers'][kind] for row in part):,.0f} tokens" if part else ""
            cells.append(f"{len(part)} run{'s' * (len(part) != 1)}{tokens}")
            cells.append(f"{statistics.mean(row['seconds']['layers'] for row in part):.1f}" if part else "-")
        lines.append(cells)
    title = "Seconds until the layers were there (reading the data included), means"
    return Grid(title, [*_SETTING, "computed layers", "seconds", "read all", "seconds"], lines)


def perplexity_table(rows: Iterable[Row]) -> Grid:
    """One line for each training of a biLM: perplexity on held-out text before (of what it started from) and after."""
    lines = []
    for row in sorted((row for row in rows if row["elmo"] is None), key=lambda row: str(row["run_id"])):
        _, data, scale, positions = setting(row)
        begun = row.get("start") is not None
        shown = [data, row["config"]["task"]["lm"]["text"], scale, positions, f"{row['data']['vocabulary']:,}"]
        start = [row["start"]["init"], f"{row['before']['perplexity']:.1f}"] if begun else ["-", "-"]
        after = row["scores"]["dev"]
        lines.append([*shown, str(row["seed"]), *start, *(f"{after[name]:.1f}" for name in metrics(row))])
    header = ["data", "text", "scale", "an epoch", "words", "seed", "from", "before", "after", "forward", "backward"]
    return Grid("Perplexity of biLMs on held-out text, before and after training", header, lines)


def _scores(rows: Sequence[Row], split: str) -> str:
    if any(split not in row["scores"] for row in rows):
        return "-"
    return ", ".join(_mean([row["scores"][split][name] for row in rows]) for name in metrics(rows[0]))


def _mean(values: list[float]) -> str:
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{spread}"
