"""Figures of curves: score by share of the data, by epoch and by lambda.

Colours are those of Okabe and Ito, which people with any colour vision tell apart; shapes of points differ too.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from elmo_tasks.render.drawing import INK
from elmo_tasks.render.series import Curve, Panel, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR = {"none": INK, "input": "#0072b2", "output": "#d55e00", "both": "#009e73"}
MARKER = {"none": "o", "input": "s", "output": "^", "both": "D"}
DASHES = ["-", "--", ":", "-."]
LONGEST_NAME = 64
CHARACTERS = 36  # that fit beside each other in a panel
MOST_BANDS = 4  # curves of a panel; more bands would hide each other

_BAND = (
    f"mean over seeds with one standard deviation, as a band in panels of at most {MOST_BANDS} curves and as a bar at "
    "points that stand alone"
)
CAPTIONS = {
    "gain": "Scores without ELMo (circles) and with it (diamonds): means over seeds with one standard deviation, and "
    "the difference in points. A star marks a difference of runs that had not converged.",
    "share": f"Dev score against the share of the training items: {_BAND}.",
    "epoch": f"Dev score after each epoch that all seeds reached: {_BAND}.",
    "lambda": f"Dev score against lambda, the penalty on the layer scalars: {_BAND}.",
    "weights": "Softmax-normalised layer weights s and gamma by task and place, means over seeds.",
}
"""What stands below each kind of figure."""


def _shares(axes: Axes, panel: Panel) -> None:
    """A logarithmic axis."""
    axes.set_xscale("log")
    _ticks(axes, {p.x: f"{_near(p.x):.3g}" for c in panel.curves for p in c.points})


def _ticks(axes: Axes, labels: dict[float, str]) -> None:
    """A tick for each key; the labels are slanted where they would overlap."""
    x = sorted(labels)
    axes.set_xticks(x, [labels[tick] for tick in x], minor=False)
    axes.set_xticks([], minor=True)
    places = axes.transAxes.inverted().transform(axes.transData.transform([(tick, 0.0) for tick in x]))[:, 0]
    room = [right - left for left, right in pairwise(places)]
    needed = [(len(labels[a]) + len(labels[b]) + 2) / 2 / CHARACTERS for a, b in pairwise(x)]
    if any(found < wanted for found, wanted in zip(room, needed, strict=True)):
        axes.tick_params(axis="x", labelrotation=60)


def _near(share: float) -> float:
    """The nearest round number within 1 %: 105 of 10,549 items are shown as 1 % and not 0.995 %."""
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
    _ticks(axes, {x: f"{x:g}" for x in lambdas})


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
    longest_legend = max(_legend_shape(panel)[1] for panel in panels)
    figure = Figure(figsize=(3.4 * across, (2.9 + 0.16 * longest_legend) * lines), layout="constrained")
    grid = figure.subplots(lines, across, squeeze=False).flatten()
    for axes, panel in zip(grid, panels, strict=False):
        for curve, look in zip(panel.curves, _looks(panel.curves), strict=True):
            _line(axes, curve, look, with_band=len(panel.curves) <= MOST_BANDS)
        axes.set_title("\n".join(textwrap.wrap(short(panel.title), CHARACTERS)))
        axes.set_xlabel(x_label)
        axes.set_ylabel(f"dev {panel.metric}")
        finish(axes, panel)
        _legend(figure, axes, columns=_legend_shape(panel)[0])
    for axes in grid[len(panels) :]:
        axes.remove()
    return figure


def _legend(figure: Figure, axes: Axes, columns: int) -> None:
    """A legend below the label of the horizontal axis, where there are no curves."""
    from matplotlib.transforms import ScaledTranslation

    slanted = axes.get_xticklabels()[0].get_rotation() > 0
    down = ScaledTranslation(0, -0.95 if slanted else -0.5, figure.dpi_scale_trans)  # inches
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0,
        ncols=columns,
        fontsize=7,
        handlelength=2.2,
        columnspacing=1.2,
    )


def _legend_shape(panel: Panel) -> tuple[int, int]:
    """Columns and lines of a legend as wide as the panel."""
    longest = max((len(curve.name) for curve in panel.curves), default=0)
    columns = 4 if longest <= 10 else 2 if longest <= 24 else 1
    return columns, math.ceil(len(panel.curves) / columns)


def _line(axes: Axes, curve: Curve, look: dict[str, str], *, with_band: bool) -> None:
    x = [p.x for p in curve.points]
    mean = [p.mean for p in curve.points]
    colour = COLOUR[curve.placement]
    marker = MARKER[curve.placement]
    axes.plot(x, mean, color=colour, marker=marker, markersize=3.5, label=short(curve.name), **look)  # type: ignore[arg-type]
    if with_band and any(p.n > 1 for p in curve.points):
        below = [p.mean - p.sd for p in curve.points]
        above = [p.mean + p.sd for p in curve.points]
        axes.fill_between(x, below, above, color=colour, alpha=0.15, linewidth=0)
    for p in isolated(curve.points):
        axes.errorbar(p.x, p.mean, yerr=p.sd, color=colour, capsize=2, linewidth=1)


def isolated(points: list[Point]) -> list[Point]:
    """Points of several seeds with a gap on both sides, where a band would have no width."""
    present = [p.n > 0 for p in points]
    alone = [not any(present[i - 1 : i]) and not any(present[i + 1 : i + 2]) and present[i] for i in range(len(points))]
    return [p for p, is_alone in zip(points, alone, strict=True) if is_alone and p.n > 1]


def _looks(curves: list[Curve]) -> list[dict[str, str]]:
    """Another kind of line for each further curve of a placement; after these, hollow points."""
    placements = [curve.placement for curve in curves]
    earlier = [placements[:i].count(placement) for i, placement in enumerate(placements)]
    hollow = {"markerfacecolor": "white"}
    return [{"linestyle": DASHES[n % len(DASHES)], **(hollow if n >= len(DASHES) else {})} for n in earlier]


def short(name: str) -> str:
    """The name, shortened to the room in a figure."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
