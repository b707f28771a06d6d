"""Figures from rows: score by share of the data, by epoch and by lambda, and the layer weights.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; shapes of points differ too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from elmo_tasks.report.drawing import INK, Drawing, draw, style
from elmo_tasks.report.rows import Row
from elmo_tasks.report.series import Curve, Mix, Panel, by_epoch, by_lambda, by_share, mixes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = {"none": INK, "input": "#0072b2", "output": "#d55e00", "both": "#009e73"}
MARKER = {"none": "o", "input": "s", "output": "^", "both": "D"}
PLACES = ("input", "output")
DASHES = ["-", "--", ":", "-."]
LONGEST_NAME = 64
MOST_BANDS = 4  # curves of a panel; more bands would hide one another

_BAND = f"mean over seeds, and one standard deviation around it in panels of at most {MOST_BANDS} curves"
CAPTIONS = {
    "share": f"Dev score against the share of the training items: {_BAND}.",
    "epoch": f"Dev score after each epoch that all seeds reached: {_BAND}.",
    "lambda": f"Dev score against lambda, the penalty on the layer scalars: {_BAND}.",
    "weights": "Softmax-normalised layer weights s and gamma by task and place, means over seeds. Weights below 1/3 "
    "are hatched with horizontal lines, weights above 2/3 are speckled, as in figure 2 of the paper.",
}
"""What stands below each kind of figure."""

LOW, HIGH = 1 / 3, 2 / 3  # hatched below, speckled above, as in the paper's figure 2


def figures(rows: Sequence[Row]) -> list[Drawing]:
    """Every figure that the rows have numbers for.

    Raises:
        UserError: if matplotlib is not installed.
    """
    with style():
        made: list[tuple[str, str, Figure | None]] = [
            ("share", CAPTIONS["share"], line_figure(by_share(rows), "share")),
            ("epochs", CAPTIONS["epoch"], line_figure(by_epoch(rows), "epoch")),
            ("weights", CAPTIONS["weights"], weights_figure([mix for place in PLACES for mix in mixes(rows, place)])),
            ("lambda", CAPTIONS["lambda"], line_figure(by_lambda(rows), "lambda")),
        ]
        return [draw(name, title, figure) for name, title, figure in made if figure is not None]


def _shares(axes: Axes, panel: Panel) -> None:
    """A logarithmic axis."""
    axes.set_xscale("log")
    shares = sorted({p.x for c in panel.curves for p in c.points})
    axes.set_xticks(shares, [f"{_near(share):.3g}" for share in shares], minor=False)
    axes.set_xticks([], minor=True)


def _near(share: float) -> float:
    """The round number that was meant, within 1 %: 105 of 10,549 items are 1 % and not 0.995 %."""
    rounded = float(f"{share:.1g}")
    return rounded if abs(share - rounded) < 0.01 * share else share


def _epochs(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def _lambdas(axes: Axes, panel: Panel) -> None:
    """A logarithmic axis that has a place for 0."""
    lambdas = sorted({p.x for c in panel.curves for p in c.points})
    smallest = min((x for x in lambdas if x > 0), default=1.0)
    axes.set_xscale("symlog", linthresh=smallest, linscale=0.7)
    axes.set_xticks(lambdas, [f"{x:g}" for x in lambdas], minor=False)
    axes.set_xticks([], minor=True)


AXES: dict[str, tuple[str, Callable[[Axes, Panel], None]]] = {
    "share": ("share of training items (%)", _shares),
    "epoch": ("epoch", _epochs),
    "lambda": ("lambda", _lambdas),
}
"""Label and look of each kind of horizontal axis."""


def line_figure(panels: Sequence[Panel], axis: str) -> Figure | None:
    """Panels side by side, at most three in a line, each with its legend; None without any.

    Args:
        panels: dev scores.
        axis: a key of :data:`AXES`.
    """
    if not panels:
        return None
    from matplotlib.figure import Figure

    x_label, finish = AXES[axis]
    across = min(3, len(panels))
    lines = math.ceil(len(panels) / across)
    figure = Figure(figsize=(3.4 * across, 3.1 * lines), layout="constrained")
    grid = figure.subplots(lines, across, squeeze=False).flatten()
    for axes, panel in zip(grid, panels, strict=False):
        for curve, dashes in zip(panel.curves, _dashes(panel.curves), strict=True):
            _line(axes, curve, dashes, with_band=len(panel.curves) <= MOST_BANDS)
        axes.set_title(short(panel.title))
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"dev {panel.metric}")
        finish(axes, panel)
        columns = 4 if all(len(curve.name) <= 10 for curve in panel.curves) else 2
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}  # below, where there are no curves
        axes.legend(**place, ncols=columns, fontsize=7, handlelength=2.2, columnspacing=1.2)
    for axes in grid[len(panels) :]:
        axes.remove()
    return figure


def _line(axes: Axes, curve: Curve, dashes: str, *, with_band: bool) -> None:
    x = [p.x for p in curve.points]
    mean = [p.mean for p in curve.points]
    colour = COLOUR[curve.placement]
    axes.plot(
        x, mean, color=colour, linestyle=dashes, marker=MARKER[curve.placement], markersize=3.5, label=short(curve.name)
    )
    if with_band and any(p.n > 1 for p in curve.points):
        below = [p.mean - p.sd for p in curve.points]
        above = [p.mean + p.sd for p in curve.points]
        axes.fill_between(x, below, above, color=colour, alpha=0.15, linewidth=0)


def _dashes(curves: list[Curve]) -> list[str]:
    """Another kind of line for each further curve of a placement."""
    placements = [curve.placement for curve in curves]
    earlier = [placements[:i].count(placement) for i, placement in enumerate(placements)]
    return [DASHES[n % len(DASHES)] for n in earlier]


def weights_figure(learned: Sequence[Mix]) -> Figure | None:
    """Layer weights as a heat map, a line for each mix, one panel for each place; None without any."""
    panels = [(place, found) for place in PLACES if (found := [mix for mix in learned if mix.place == place])]
    if not panels:
        return None
    from matplotlib.figure import Figure

    n_layers = max(len(mix.s) for _, found in panels for mix in found)
    heights = [len(found) for _, found in panels]
    figure = Figure(figsize=(4.2 + 0.8 * n_layers, 0.9 * len(panels) + 0.34 * sum(heights)), layout="constrained")
    grid = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights).flatten()
    for axes, (place, found) in zip(grid, panels, strict=True):
        _heat_map(axes, found, n_layers)
        axes.set_title(f"{place} ELMo")
    return figure


def _heat_map(axes: Axes, found: list[Mix], n_layers: int) -> None:
    """One line of cells for each mix, gamma behind it."""
    import matplotlib
    from matplotlib.patches import Rectangle

    colours = matplotlib.colormaps["Blues"]
    for y, mix in enumerate(found):
        for x, s in enumerate(mix.s):
            colour = colours(0.05 + 0.6 * s)  # light enough for black figures on it
            cell = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="#44597a", linewidth=0)
            cell.set_hatch(hatch(s))
            axes.add_patch(cell)
            plate = {"facecolor": colour, "edgecolor": "none", "pad": 1.2}
            axes.text(x, y, f"{s:.3f}", ha="center", va="center", color="black", bbox=plate)
        axes.text(n_layers, y, f"{mix.gamma:.2f}", ha="center", va="center")
    axes.set_xlim(-0.5, n_layers + 0.5)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xticks(range(n_layers + 1), [*(f"layer {layer}" for layer in range(n_layers)), "gamma"])
    axes.set_yticks(range(len(found)), [short(mix.name) for mix in found])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)


def hatch(s: float) -> str:
    """The paper's marks: horizontal lines below 1/3, speckles above 2/3."""
    return "---" if s < LOW else "..." if s > HIGH else ""


def short(name: str) -> str:
    """The name, or as much of it as a figure has room for."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
