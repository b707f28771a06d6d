"""The learned mix weights, with the paper's hatching."""

from __future__ import annotations

from collections.abc import Mapping

from elmo_tasks.render.charts import HIGH, LOW, hatching
from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import LayerWeights
from elmo_tasks.rows.settings import Setting
from elmo_tasks.tables.collect import Selection
from elmo_tasks.tables.declare import Weights
from elmo_tasks.tables.texts import EvaluatedTable, make_grid, marks_text

MARKS = {"hatched": " //", "": "", "speckled": " ::"}
"""How a table's text shows what a figure draws (see :func:`elmo_tasks.render.charts.hatching`)."""


def evaluate_weights(weights: Weights, selection: Selection) -> EvaluatedTable:
    """Cells, table and numbers of what the mixes learned."""
    cells, found_lines, mixes = [], list[tuple[list[str], str]](), list[LayerWeights]()
    for line in selection.shown(weights.lines):
        cell = selection.find(line.overrides, split="dev", seeds=weights.seeds)
        cells.append(cell)
        mixes += (found := layer_weights(line.label, cell.setting))
        marks = marks_text(cell)
        for mix in found:
            marked = [f"{weight:.3f}{MARKS[hatching(weight)]}" for weight in mix.s]
            found_lines.append(([mix.name, mix.place, f"{mix.n}{marks}", *marked], f"{mix.gamma:.3f}"))
        if not found:
            found_lines.append(([line.label, "missing", f"0{marks}"], ""))
    n_layers = max((len(mix.s) for mix in mixes), default=3)
    header = ["", "place", "seeds", *(f"layer {k}" for k in range(n_layers)), "gamma"]
    lines = [[*texts, *[""] * (len(header) - 1 - len(texts)), gamma] for texts, gamma in found_lines]
    first = [f"// hatched: below {LOW:.4g}; :: speckled: above {HIGH:.4g}"]
    labels = [line.label for line in selection.shown(weights.lines)]
    last = no_mean_notes({label: cell.setting for label, cell in zip(labels, cells, strict=True)})
    grid = make_grid(selection, weights, cells, header, lines, first=first, last=last)
    return EvaluatedTable(cells, Section(grid, mixes=tuple(mixes)))


def layer_weights(name: str, setting: Setting) -> list[LayerWeights]:
    """What the mixes of some runs learned, by place: means over seeds."""
    found = setting.mixes()
    return [LayerWeights(name, place, [*mix.s], mix.gamma, len(setting.rows)) for place, mix in found.items()]


def no_mean_notes(settings: Mapping[str, Setting]) -> list[str]:
    """A sentence for each setting, by its name, whose seeds' mixes make no mean."""
    return [f"{name}: no mean, {why}" for name, setting in settings.items() if (why := setting.why_no_mix())]
