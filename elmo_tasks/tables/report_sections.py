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
from elmo_tasks.rows.schema import LanguageModelRow
from elmo_tasks.rows.settings import Setting, mean_text
from elmo_tasks.tables.collect import RISING
from elmo_tasks.tables.curves import mean_curve
from elmo_tasks.tables.gains import evaluate_gains
from elmo_tasks.tables.panels import keys_text, panels, trained_settings
from elmo_tasks.tables.wanted import other_keys
from elmo_tasks.tables.weights import layer_weights, no_mean_notes

HEADER = ["task", "data", "scale", "training items", "ELMo", "other keys"]
_TASK, _DATA, _SCALE, _ITEMS, _ELMO, _KEYS = range(len(HEADER))


def scores(rows: Rows) -> Section:
    """One line for each setting that was run: mean and standard deviation over its seeds."""
    found = _tasks(rows)
    lines = []
    for setting, shown in zip(found, _shown(found), strict=True):
        names = setting.first.metric.reported
        dev, test = (mean_text(setting.scores(split).values()) for split in ("dev", "test"))
        others = [f"{split} {text}" for split in ("dev", "test") if (text := _others(setting, split))]
        lines.append([*shown, str(len(setting.rows)), names[0], dev, test, "; ".join(others), _training(setting)])
    notes = [
        f"{row.run_id}: left out, an older run of a setting and seed" for setting in found for row in setting.older
    ]
    notes += [
        f"{setting.first.slug}: no mean on test, {why}" for setting in found if (why := setting.why_unscored("test"))
    ]
    header = [*HEADER, "seeds", "metric", "dev", "test", "other scores", "training"]
    title = "Scores: mean ± standard deviation over seeds"
    return Section(Grid(title, header, lines, [*notes, *rows.notes()], [describe.tags(g.first) for g in found]))


def weights(rows: Rows) -> Section:
    """What the mixes learned: softmax weights of the layers and gamma, means over seeds."""
    found = [setting for setting in _tasks(rows) if setting.first.elmo is not None and setting.first.elmo.weights]
    lines, mixes, tags = [], [], []
    columns = _shown(found)
    names = _short_names(columns)
    for setting, shown, name in zip(found, columns, names, strict=True):
        learned = layer_weights(name, setting)
        lines += [[*shown, mix.place, ", ".join(f"{s:.3f}" for s in mix.s), f"{mix.gamma:.3f}"] for mix in learned]
        tags += [describe.tags(setting.first)] * len(learned)
        if setting.keys.get("elmo.mix", "scalar") == "scalar":
            mixes += learned
    header = [*HEADER, "place", "s (layer 0, 1, ...)", "gamma"]
    notes = no_mean_notes(dict(zip(names, found, strict=True)))
    return Section(Grid("Layer weights: means over seeds", header, lines, notes, tags), mixes=tuple(mixes))


def layers(rows: Rows) -> Section:
    """What the layer store saves: runs that had layers to compute, and runs that read them all."""
    found = [setting for setting in _tasks(rows) if setting.first.bilm is not None and not setting.first.members]
    lines = []
    for setting, shown in zip(found, _shown(found), strict=True):
        cells = [*shown]
        for kind, wanted in (("computed", True), ("read", False)):
            part = [row for row in setting.rows if (row.layers.computed > 0) == wanted]
            tokens = f", {statistics.fmean(getattr(row.layers, kind) for row in part):,.0f} tokens" if part else ""
            cells.append(f"{len(part)} run{'s' * (len(part) != 1)}{tokens}")
            cells.append(f"{statistics.fmean(row.seconds.layers for row in part):.1f}" if part else "-")
        lines.append(cells)
    header = [*HEADER, "computed layers", "seconds", "read all", "seconds"]
    title = "Layer store: seconds until the layers were there (reading the data included), means"
    return Section(Grid(title, header, lines, tags=[describe.tags(setting.first) for setting in found]))


def perplexities(rows: Rows) -> Section:
    """One line for each training of a biLM: perplexity on held-out text before (of the initial weights) and after."""
    lines = []
    for row in rows.finished:
        if not isinstance(row, LanguageModelRow):
            continue
        text, before = row.language_model, row.language_model.before
        start = [
            "-" if text.initial is None else text.initial.name,
            "-" if before is None else f"{before[row.metric.name]:.1f}",
        ]
        words = [f"{text.vocabulary:,}", f"{text.unknown:.1%}"]
        epochs = str(row.training.epochs)
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

    def points(members: list[Setting]) -> list[Point]:
        members = [
            setting for setting in members if "train" in setting.first.data.items
        ]  # a row changed by hand may lack it
        trains = [setting.first.data.items["train"] for setting in members]
        shares = [100 * train.used / train.original for train in trains]
        return sorted((point(x, g.scores("dev").values()) for x, g in zip(shares, members, strict=True)), key=_x)

    found = panels(trained_settings(rows), points, "data.fraction")
    return Section(Grid("Shares: dev score against the share of the training items"), tuple(found), "share")


def lambdas(rows: Rows) -> Section:
    """Dev score against lambda for learned mixes, and the baseline at every lambda."""
    learned = [setting for setting in trained_settings(rows) if setting.keys.get("elmo.mix", "scalar") == "scalar"]

    def points(members: list[Setting]) -> list[Point]:
        if members[0].placement == "none":
            return []
        return sorted(
            (point(setting.keys["elmo.lambda"], setting.scores("dev").values()) for setting in members), key=_x
        )

    found = panels(learned, points, "elmo.lambda", repeat_baseline=True)
    return Section(Grid("Lambda: dev score against the penalty on the layer scalars"), tuple(found), "lambda")


def epochs(rows: Rows) -> Section:
    """Dev score at the end of each epoch, as far as every seed got."""
    found = panels(trained_settings(rows), lambda members: mean_curve(members[0]))
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


def _tasks(rows: Rows) -> list[Setting]:
    return [setting for setting in rows.settings if setting.first.elmo is not None]


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


def _others(setting: Setting, split: Split) -> str:
    """``exact_match 56.76 ± 0.38``: the reported scores beside the one that chose the checkpoint."""
    found = {name: setting.scores(split, name) for name in setting.first.metric.reported[1:]}
    return ", ".join(f"{name} {mean_text(values.values())}" for name, values in found.items() if values)


def _training(setting: Setting) -> str:
    """Whether the runs (of an ensemble: its members) had converged."""
    if all(row.training is None for row in setting.trained):
        return "-"
    return RISING if setting.rising else "converged"


def _shown(found: list[Setting]) -> list[list[str]]:
    """The columns of :data:`HEADER`; lines that would be equal show the digests of their inputs."""
    shown = []
    for setting in found:
        row = setting.first
        cells = [row.task, row.data.name, row.scale, describe.items(row), describe.elmo(row)]
        shown.append([*cells, keys_text(other_keys(setting))])
    return [
        [*cells[:-1], ", ".join(text for text in (cells[-1], *digests) if text)]
        for cells, digests in zip(shown, _differing_digests(shown, found), strict=True)
    ]


def _differing_digests(shown: list[list[str]], found: list[Setting]) -> list[list[str]]:
    """For each line the digests in which it differs from lines that look the same; none where there is no such line."""
    texts: list[list[str]] = [[] for _ in shown]
    for field, name in NAMES_OF_INPUTS.items():
        digests = [getattr(setting.first.inputs, field) for setting in found]
        for i, cells in enumerate(shown):
            same = {digests[k] for k, other in enumerate(shown) if other == cells}
            if len(same) > 1 and digests[i] is not None:
                texts[i].append(f"{name} {digests[i][:4]}")
    return texts
