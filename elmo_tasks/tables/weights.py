"""The learned mix weights, with the paper's hatching."""

from __future__ import annotations

from elmo_tasks.render.grid import Grid
from elmo_tasks.render.sections import Section
from elmo_tasks.render.series import LayerWeights
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.grouping import average_mix
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.declare import Weights
from elmo_tasks.tables.measure import Choice, find, shown
from elmo_tasks.tables.paper import value
from elmo_tasks.tables.texts import legend, marks_text, setting_note

HATCHED, SPECKLED = "//", "::"
"""Marks of a table; figures have the paper's patterns (``render/figures.py``)."""


def style(weight: float, *, low: float, high: float) -> str:
    """The paper's rule: a field below 1/3 is hatched, one above 2/3 is speckled."""
    return HATCHED if weight < low else SPECKLED if weight > high else ""


def fill_weights(weights: Weights, rows: Rows, choice: Choice) -> tuple[list[Cell], Section]:
    """Cells, table and numbers of what the mixes learned."""
    low, high = value(weights.hatched_below).v, value(weights.speckled_above).v
    cells, lines, mixes = [], [], list[LayerWeights]()
    for line in shown(weights.lines, choice):
        cell = find(rows, choice, line.overrides, split="dev", seeds=weights.seeds)
        cells.append(cell)
        mixes += (found := _mixes(line.label, cell))
        marks = marks_text(cell)
        for mix in found:
            marked = [f"{weight:.3f} {style(weight, low=low, high=high)}".strip() for weight in mix.s]
            lines.append([mix.name, mix.place, f"{mix.n}{marks}", *marked, f"{mix.gamma:.3f}"])
        if not found:
            lines.append([line.label, "missing", f"0{marks}"])
    n_layers = max((len(mix.s) for mix in mixes), default=3)
    header = ["", "place", "seeds", *(f"layer {k}" for k in range(n_layers)), "gamma"]
    lines = [line + [""] * (len(header) - len(line)) for line in lines]
    notes = [setting_note(cells), f"{HATCHED} hatched: below {low:.4g}; {SPECKLED} speckled: above {high:.4g}"]
    notes += [*weights.notes, *legend(cells), *rows.notes()]
    return cells, Section(Grid(weights.title, header, lines, notes), mixes=tuple(mixes))


def _mixes(label: str, cell: Cell) -> list[LayerWeights]:
    """Means over seeds, by place."""
    rows = [*cell.rows.values()]
    places = rows[0].elmo.weights if rows and rows[0].elmo is not None else {}
    mixes = {place: average_mix(rows, place) for place in places}
    return [LayerWeights(label, place, [*mix.s], mix.gamma, len(rows)) for place, mix in mixes.items()]
