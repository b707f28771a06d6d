"""Charts: the layer weights that the mixes learned, and ELMo against the baseline by task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from elmo_tasks.render.drawing import INK
from elmo_tasks.render.figures import COLOUR, MARKER, short
from elmo_tasks.render.series import LayerWeights, Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLACES = ("input", "output")
LOW, HIGH = 1 / 3, 2 / 3  # hatched below, speckled above, as in the paper's figure 2
LOW_HATCH, HIGH_HATCH = "---", "..."
_BESIDE: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}


def weights_figure(learned: Sequence[LayerWeights]) -> Figure | None:
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
    _hatching_legend(figure)
    return figure


def _hatching_legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "#44597a", "linewidth": 0.6}
    marks = [Patch(hatch=LOW_HATCH, label="below 1/3", **look), Patch(hatch=HIGH_HATCH, label="above 2/3", **look)]
    figure.legend(handles=marks, loc="outside lower center", ncols=2, fontsize=8)


def _heat_map(axes: Axes, found: list[LayerWeights], n_layers: int) -> None:
    """One line of cells for each mix, then gamma."""
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
    """The paper's marks (figure 2): horizontal lines below 1/3, speckles above 2/3."""
    return LOW_HATCH if s < LOW else HIGH_HATCH if s > HIGH else ""


def gain_figure(pairs: Sequence[Pair]) -> Figure | None:
    """A line for each task: the baseline's and ELMo's score with error bars, and the gain; None without any."""
    if not pairs:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 0.7 + 0.42 * len(pairs)), layout="constrained")
    axes = figure.subplots()
    for y, pair in enumerate(pairs):
        ends = [pair.baseline.mean, pair.elmo.mean]
        axes.plot(ends, [y, y], color=INK, alpha=0.25, linewidth=2, zorder=1)
        for name, placement, p in (("baseline", "none", pair.baseline), ("ELMo", "both", pair.elmo)):
            look: dict[str, Any] = {
                "color": COLOUR[placement],
                "fmt": MARKER[placement],
                "markersize": 5,
                "capsize": 2.5,
            }
            axes.errorbar(p.mean, y, xerr=p.sd if p.n > 1 else None, label=name if y == 0 else None, **look)
        star = "*" if pair.rising else ""
        axes.annotate(f"{pair.elmo.mean - pair.baseline.mean:+.1f}{star}", (1.02, y), **_BESIDE)
    axes.set_yticks(range(len(pairs)), [short(pair.name) for pair in pairs])
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.set_xlabel("score")
    axes.margins(x=0.08)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28 if len(pairs) < 4 else -0.16), ncols=2)
    return figure
