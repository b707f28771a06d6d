"""The sections of a report: everything that was measured."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable

from elmo_tasks.render.grid import Grid
from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import Point, point
from elmo_tasks.rows import describe
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.fields import Split
from elmo_tasks.rows.grouping import Group, groups, inputs, mean_text, still_rising
from elmo_tasks.tables.cells import RISING
from elmo_tasks.tables.curves import mean_curve
from elmo_tasks.tables.gains import evaluate_gains
from elmo_tasks.tables.panels import keys_text, panels, trained_groups
from elmo_tasks.tables.settings import other_keys
from elmo_tasks.tables.weights import layer_weights

HEADER = ["task", "data", "scale", "training items", "ELMo", "other keys"]
_TASK, _DATA, _SCALE, _ITEMS, _ELMO, _KEYS = range(len(HEADER))


def scores(rows: Rows) -> Section:
    """One line for each setting that was run: mean and standard deviation over its seeds."""
    found = _tasks(rows)
    lines = []
    for group, shown in zip(found, _shown(found), strict=True):
        names = group.first.metric.reported
        dev, test = (mean_text(group.scores(split, names[0])) for split in ("dev", "test"))
        others = [f"{split} {text}" for split in ("dev", "test") if (text := _others(group, split))]
        lines.append([*shown, str(len(group.rows)), names[0], dev, test, "; ".join(others), _training(group, rows)])
    notes = [f"{row.run_id}: left out, an older run of a setting and seed" for group in found for row in group.older]
    notes += [f"{group.first.slug}: no mean on test, {why}" for group in found if (why := group.why_unscored("test"))]
    header = [*HEADER, "seeds", "metric", "dev", "test", "other scores", "training"]
    title = "Scores: mean ± standard deviation over seeds"
    return Section(Grid(title, header, lines, [*notes, *rows.notes()], [describe.tags(g.first) for g in found]))


def weights(rows: Rows) -> Section:
    """What the mixes learned: softmax weights of the layers and gamma, means over seeds."""
    found = [group for group in _tasks(rows) if group.first.elmo is not None and group.first.elmo.weights]
    lines, mixes, tags = [], [], []
    columns = _shown(found)
    for group, shown, name in zip(found, columns, _short_names(columns), strict=True):
        learned = layer_weights(name, group.rows)
        lines += [[*shown, mix.place, ", ".join(f"{s:.3f}" for s in mix.s), f"{mix.gamma:.3f}"] for mix in learned]
        tags += [describe.tags(group.first)] * len(learned)
        if group.setting.get("elmo.mix", "scalar") == "scalar":
            mixes += learned
    header = [*HEADER, "place", "s (layer 0, 1, ...)", "gamma"]
    return Section(Grid("Layer weights: means over seeds", header, lines, tags=tags), mixes=tuple(mixes))


def layers(rows: Rows) -> Section:
    """What the layer store saves: runs that had layers to compute, and runs that read them all."""
    found = [group for group in _tasks(rows) if group.first.bilm is not None and group.first.ensemble is None]
    lines = []
    for group, shown in zip(found, _shown(found), strict=True):
        cells = [*shown]
        for kind, wanted in (("computed", True), ("read", False)):
            part = [row for row in group.rows if (row.layers.computed > 0) == wanted]
            tokens = f", {statistics.fmean(getattr(row.layers, kind) for row in part):,.0f} tokens" if part else ""
            cells.append(f"{len(part)} run{'s' * (len(part) != 1)}{tokens}")
            cells.append(f"{statistics.fmean(row.seconds.layers for row in part):.1f}" if part else "-")
        lines.append(cells)
    header = [*HEADER, "computed layers", "seconds", "read all", "seconds"]
    title = "Layer store: seconds until the layers were there (reading the data included), means"
    return Section(Grid(title, header, lines, tags=[describe.tags(group.first) for group in found]))


def perplexities(rows: Rows) -> Section:
    """One line for each training of a biLM: perplexity on held-out text before (of the initial weights) and after."""
    lines = []
    for row in rows.finished:
        if row.language_model is None:
            continue
        text, before = row.language_model, row.language_model.before
        start = [
            "-" if text.initial is None else text.initial.name,
            "-" if before is None else f"{before[row.metric.name]:.1f}",
        ]
        words = [f"{text.vocabulary:,}", f"{text.unknown:.1%}"]
        epochs = "-" if row.training is None else str(row.training.epochs)
        shown = [row.config["bilm"]["name"], row.data.name, text.text, row.scale, describe.items(row), epochs, *words]
        dev = row.scores["dev"]
        after = [f"{dev[name]:.1f}" if name in dev else "-" for name in (row.metric.name, "forward", "backward")]
        lines.append([*shown, str(row.seed), *start, *after])
    header = ["biLM", "data", "text", "scale", "an epoch", "epochs", "words", "unknown", "seed"]
    header += ["from", "before", "after", "forward", "backward"]
    title = "Language models: perplexity on held-out text, before and after training"
    return Section(Grid(title, header if lines else [], lines))


def shares(rows: Rows) -> Section:
    """Dev score against the share of the training items in percent."""

    def points(members: list[Group]) -> list[Point]:
        members = [group for group in members if "train" in group.first.data.items]  # a row changed by hand may lack it
        trains = [group.first.data.items["train"] for group in members]
        shares = [100 * train.used / train.original for train in trains]
        return sorted((point(x, g.dev_scores) for x, g in zip(shares, members, strict=True)), key=_x)

    found = panels(trained_groups(rows), points, "data.fraction")
    return Section(Grid("Shares: dev score against the share of the training items"), tuple(found), "share")


def lambdas(rows: Rows) -> Section:
    """Dev score against lambda for learned mixes, and the baseline at every lambda."""
    learned = [group for group in trained_groups(rows) if group.setting.get("elmo.mix", "scalar") == "scalar"]

    def points(members: list[Group]) -> list[Point]:
        if members[0].placement == "none":
            return []
        return sorted((point(group.setting["elmo.lambda"], group.dev_scores) for group in members), key=_x)

    found = panels(learned, points, "elmo.lambda", repeat_baseline=True)
    return Section(Grid("Lambda: dev score against the penalty on the layer scalars"), tuple(found), "lambda")


def epochs(rows: Rows) -> Section:
    """Dev score at the end of each epoch, as far as every seed got."""
    found = panels(trained_groups(rows), lambda members: mean_curve([*members[0].rows]))
    return Section(Grid("Training curves: dev score by epoch"), tuple(found), "epoch")


NAMES_OF_INPUTS = {"data": "data", "word_vectors": "word vectors", "bilm": "biLM", "warm": "warmed up by"}

PARTS: dict[str, Callable[[Rows], Section]] = {
    "gains": evaluate_gains,
    "scores": scores,
    "shares": shares,
    "lambdas": lambdas,
    "weights": weights,
    "epochs": epochs,
    "layers": layers,
    "perplexities": perplexities,
}
"""The sections of a report, in their order."""


def _x(p: Point) -> float:
    return p.x


def _tasks(rows: Rows) -> list[Group]:
    return groups(row for row in rows.finished if row.elmo is not None)


def _short_names(shown: list[list[str]]) -> list[str]:
    """As few columns of each line as distinguish it from the others; of a key its last part, ``dropout 0.4``."""
    shown = [[*cells[:_KEYS], re.sub(r"[\w.]*\.(\w+)=", r"\1 ", cells[_KEYS])] for cells in shown]
    names = [cells[_TASK] for cells in shown]
    for columns in (
        (_TASK, _DATA),
        (_TASK, _ELMO),
        (_TASK, _ELMO, _KEYS),
        (_TASK, _ITEMS, _ELMO),
        (_TASK, _DATA, _ITEMS, _ELMO),
        (_TASK, _DATA, _SCALE, _ITEMS, _ELMO, _KEYS),
    ):
        clash = {name for name in names if names.count(name) > 1}
        longer = [", ".join(cells[k] for k in columns if cells[k]) for cells in shown]
        names = [long if name in clash else name for name, long in zip(names, longer, strict=True)]
    return names


def _others(group: Group, split: Split) -> str:
    """``exact_match 56.76 ± 0.38``: the reported scores beside the one that chose the checkpoint."""
    found = {name: group.scores(split, name) for name in group.first.metric.reported[1:]}
    return ", ".join(f"{name} {mean_text(values)}" for name, values in found.items() if values)


def _training(group: Group, rows: Rows) -> str:
    """Whether the runs (of an ensemble: its members) had converged."""
    names = {member.run_id for row in group.rows if row.ensemble is not None for member in row.ensemble.members}
    trained = [row for row in rows.finished if row.run_id in names] if names else [*group.rows]
    if all(row.training is None for row in trained):
        return "-"
    return RISING if still_rising(trained) else "converged"


def _shown(found: list[Group]) -> list[list[str]]:
    """The columns of :data:`HEADER`; lines that would be equal show the digests of their inputs."""
    shown = []
    for group in found:
        row = group.first
        cells = [row.task, row.data.name, row.scale, describe.items(row), describe.elmo(row)]
        shown.append([*cells, keys_text(other_keys(group))])
    return [
        [*cells[:-1], ", ".join(text for text in (cells[-1], *digests) if text)]
        for cells, digests in zip(shown, _differing_digests(shown, found), strict=True)
    ]


def _differing_digests(shown: list[list[str]], found: list[Group]) -> list[list[str]]:
    """For each line the digests in which it differs from lines that look the same; none where there is no such line."""
    texts: list[list[str]] = [[] for _ in shown]
    for field, name in NAMES_OF_INPUTS.items():
        digests = [getattr(inputs(group.first), field) for group in found]
        for i, cells in enumerate(shown):
            same = {digests[k] for k, other in enumerate(shown) if other == cells}
            if len(same) > 1 and digests[i] is not None:
                texts[i].append(f"{name} {digests[i][:4]}")
    return texts
