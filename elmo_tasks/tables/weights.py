"""What the mixes learned, with the paper's hatching."""

from __future__ import annotations

import statistics

from elmo_tasks.report.grid import Grid
from elmo_tasks.report.series import Mix
from elmo_tasks.tables.cells import Cell
from elmo_tasks.tables.declare import Weights
from elmo_tasks.tables.measure import Choice, find, shown
from elmo_tasks.tables.paper import value
from elmo_tasks.tables.render import legend, setting_note
from elmo_tasks.tables.rows import Rows

HATCHED, SPECKLED = "//", "::"


def style(weight: float, *, low: float, high: float) -> str:
    """The paper's rule: a field below 1/3 is hatched, one above 2/3 is speckled."""
    return HATCHED if weight < low else SPECKLED if weight > high else ""


def fill_weights(weights: Weights, rows: Rows, choice: Choice) -> tuple[list[Cell], Grid, list[Mix]]:
    """Cells, table and numbers of what the mixes learned."""
    low, high = value(weights.hatched_below).v, value(weights.speckled_above).v
    cells, lines, mixes, unusable = [], [], list[Mix](), 0
    for line in shown(weights.lines, choice):
        cell = find(rows, choice, line.overrides, split="dev", seeds=weights.seeds)
        cells.append(cell)
        found, n_unusable = _mixes(line.label, cell)
        mixes += found
        unusable += n_unusable
        marks = f" [{''.join(cell.marks)}]" if cell.marks else ""
        for mix in found:
            marked = [f"{weight:.3f} {style(weight, low=low, high=high)}".strip() for weight in mix.s]
            lines.append([mix.name, mix.place, f"{mix.n}{marks}", *marked, f"{mix.gamma:.3f}"])
        if not found:
            lines.append([line.label, "missing", f"0{marks}"])
    n_layers = max((len(mix.s) for mix in mixes), default=3)
    header = ["", "place", "seeds", *(f"layer {k}" for k in range(n_layers)), "gamma"]
    lines = [line + [""] * (len(header) - len(line)) for line in lines]
    notes = [setting_note(cells), f"{HATCHED} hatched: below {low:.4g}; {SPECKLED} speckled: above {high:.4g}"]
    notes += [f"{unusable} rows hold no layer weights and were left out"] if unusable else []
    return cells, Grid(weights.title, header, lines, [*notes, *weights.notes, *legend(cells), *rows.notes()]), mixes


def _mixes(label: str, cell: Cell) -> tuple[list[Mix], int]:
    """Means over the rows that hold weights, by place, and how many rows do not."""
    usable = [weights for row in cell.rows.values() if (weights := row["elmo"]["weights"])]
    mixes = []
    for place in usable[0] if usable else ():
        of_layers = list(zip(*(weights[place]["s"] for weights in usable), strict=True))
        mixes.append(
            Mix(
                name=label,
                place=place,
                s=list(map(statistics.fmean, of_layers)),
                gamma=statistics.fmean(weights[place]["gamma"] for weights in usable),
                n=len(usable),
            )
        )
    return mixes, cell.n - len(usable)
