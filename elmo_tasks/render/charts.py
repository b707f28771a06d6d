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
LOW, HIGH = 1 / 3, 2 / 3
HATCHES = {"hatched": "---", "": "", "speckled": "..."}  # matplotlib's names for horizontal lines and dots
_BESIDE: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}


def weights_figure(learned: Sequence[LayerWeights]) -> Figure | None:
    """A heat map of layer weights: a row for each mix, a panel for each place; None without any."""
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
    labels = {"hatched": "below 1/3", "speckled": "above 2/3"}
    marks = [Patch(hatch=HATCHES[name], label=label, **look) for name, label in labels.items()]
    figure.legend(handles=marks, loc="outside lower center", ncols=2, fontsize=8)


def _heat_map(axes: Axes, found: list[LayerWeights], n_layers: int) -> None:
    """A row of cells for each mix, then gamma."""
    import matplotlib
    from matplotlib.patches import Rectangle

    colours = matplotlib.colormaps["Blues"]
    for y, mix in enumerate(found):
        for x, s in enumerate(mix.s):
            colour = colours(0.05 + 0.6 * s)  # light enough for black figures on it
            cell = Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="#44597a", linewidth=0)
            cell.set_hatch(HATCHES[hatching(s)])
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


def hatching(s: float) -> str:
    """How the paper's figure 2 marks a layer weight: ``hatched`` below 1/3, ``speckled`` above 2/3, or not at all."""
    return "hatched" if s < LOW else "speckled" if s > HIGH else ""


def gain_figure(pairs: Sequence[Pair]) -> Figure | None:
    """A row for each task: the baseline's and ELMo's score with error bars, and the gain; None without any."""
    if not pairs:
        return None
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 0.7 + 0.42 * len(pairs)), layout="constrained")
    axes = figure.subplots()
    for y, pair in enumerate(pairs):
        _pair(axes, y, pair)
    axes.set_yticks(range(len(pairs)), [short(pair.name) for pair in pairs])
    for y, name in enumerate(axes.get_yticklabels()):
        name.set_gid(f"part-{y}-name")
    axes.set_ylim(len(pairs) - 0.4, -0.6)
    axes.set_xlabel("score (* not converged)" if any(pair.rising for pair in pairs) else "score")
    axes.margins(x=0.08)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def _pair(axes: Axes, y: int, pair: Pair) -> None:
    """Two points with error bars, a line between them and the gain beside it; their ids are those of Drawing.parts."""
    ends = [pair.baseline.mean, pair.elmo.mean]
    artists: list[Any] = [*axes.plot(ends, [y, y], color=INK, alpha=0.25, linewidth=2, zorder=1)]
    for name, placement, p in (("baseline", "none", pair.baseline), ("ELMo", "both", pair.elmo)):
        look: dict[str, Any] = {"color": COLOUR[placement], "fmt": MARKER[placement]}
        error = p.sd if p.n > 1 else None
        label = name if y == 0 else None
        bar = axes.errorbar(p.mean, y, xerr=error, label=label, markersize=5, capsize=2.5, **look)
        artists += bar.get_children()
    star = "*" if pair.rising else ""
    artists.append(axes.annotate(f"{pair.gain:+.1f}{star}", (1.02, y), **_BESIDE))
    for n, artist in enumerate(artists):
        artist.set_gid(f"part-{y}-{n}")
