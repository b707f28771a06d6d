"""The learned mix weights, with the paper's hatching."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_tasks.render.charts import HIGH, LOW, hatching
from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import LayerWeights
from elmo_tasks.rows.grouping import average_mix
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.declare import Weights
from elmo_tasks.tables.measure import EvaluatedTable, Selection
from elmo_tasks.tables.texts import make_grid, marks_text

MARKS = {"hatched": " //", "": "", "speckled": " ::"}
"""How a table's text shows what a figure draws (see :func:`elmo_tasks.render.charts.hatching`)."""


def evaluate_weights(weights: Weights, selection: Selection) -> EvaluatedTable:
    """Cells, table and numbers of what the mixes learned."""
    cells, found_lines, mixes = [], list[tuple[list[str], str]](), list[LayerWeights]()
    for line in selection.shown(weights.lines):
        cell = selection.find(line.overrides, split="dev", seeds=weights.seeds)
        cells.append(cell)
        mixes += (found := layer_weights(line.label, [*cell.rows.values()]))
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
    grid = make_grid(selection, weights, cells, header, lines, first=first)
    return EvaluatedTable(cells, Section(grid, mixes=tuple(mixes)))


def layer_weights(name: str, rows: Sequence[Row]) -> list[LayerWeights]:
    """What the mixes of some runs learned, by place: means over seeds."""
    elmo = rows[0].elmo if rows else None
    mixes = {place: average_mix(rows, place) for place in elmo.weights} if elmo is not None else {}
    return [LayerWeights(name, place, [*mix.s], mix.gamma, len(rows)) for place, mix in mixes.items()]
