"""What is written in a figure: nothing overlaps, and short names tell curves, panels and mixes apart."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from elmo_tasks.render.charts import gain_figure
from elmo_tasks.render.drawing import style
from elmo_tasks.render.figures import line_figure
from elmo_tasks.render.series import Curve, Pair, Panel, point
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.report_sections import PARTS

pytest.importorskip("matplotlib")

MakeRow = Callable[..., Row]
Collect = Callable[..., Any]


@pytest.mark.parametrize("settings", [2, 9])
def test_nothing_written_in_a_figure_overlaps(settings: int) -> None:
    lambdas = [0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0][:settings]
    points = [point(x, [70.0]) for x in lambdas]
    curves = [Curve(f"ELMo at the input, setting {n}", "input", points) for n in range(settings)]
    panels = [Panel("a task · a data set with a long name · scale=cpu · bilm=original", "F1", curves)] * 3
    gains = [Pair("sst5", point(0, [44.0]), point(0, [47.0]), 3.0)] * settings
    with style():
        for figure in (line_figure(panels, "lambda"), gain_figure(gains[:1]), gain_figure(gains)):
            assert figure is not None
            figure.draw_without_rendering()
            extents = [box for axes in figure.axes for box in written(axes)]
            extents += [legend.get_window_extent() for legend in figure.legends]
            assert [(a, b) for a, b in itertools.combinations(extents, 2) if a.overlaps(b)] == []


def written(axes: Any) -> list[Any]:
    """The extents of the title, the axis labels, the legend and, unless they are slanted, the tick labels."""
    ticks = [tick for tick in axes.get_xticklabels() if not tick.get_rotation()]
    legend = axes.get_legend()
    parts = [axes.title, axes.xaxis.label, *ticks, *([legend] if legend else [])]
    return [part.get_window_extent() for part in parts if legend is part or part.get_text()]


def test_mixes_are_told_apart_by_the_last_part_of_a_key(make_row: MakeRow, collect: Collect) -> None:
    changes = [{"config.elmo.dropout": rate, "config.task.size": rate} for rate in (0.2, 0.4)]
    names = [mix.name for mix in PARTS["weights"](collect(*(make_row(1, 80.0, changes=one) for one in changes))).mixes]
    for name, rate in zip(names, (0.2, 0.4), strict=True):
        assert f"dropout {rate}" in name
        assert f"size {rate}" in name
        assert "=" not in name


def test_curves_are_told_apart_in_few_words(make_row: MakeRow, collect: Collect) -> None:
    changes = [{}, {"config.bilm.name": "small", "config.bilm.options": {"dim": 9}}, {"config.elmo.dropout": 0.4}]
    rows = collect(*(make_row(1, [70.0, 80.0], changes=change) for change in changes))
    (panel,) = PARTS["epochs"](rows).panels
    names = [curve.name for curve in panel.curves]
    assert len(set(names)) == 3
    assert all(len(name) < 40 and "options" not in name for name in names), names


def test_more_curves_than_kinds_of_lines_differ_in_their_points() -> None:
    curves = [Curve(f"{k}", "input", [point(0, [1.0]), point(1, [2.0])]) for k in range(6)]
    with style():
        figure = line_figure([Panel("a", "F1", curves)], "epoch")
        assert figure is not None
        looks = [(line.get_linestyle(), line.get_markerfacecolor()) for line in figure.axes[0].lines]
    assert len(set(looks)) == 6


def test_only_titles_that_clash_are_lengthened(make_row: MakeRow, collect: Collect) -> None:
    other = make_row(2, 90.0, changes={"data.digest": "eeeeeeee"})
    rows = collect(make_row(1, 80.0), other, make_row(1, 70.0, task="snli"))
    titles = [panel.title for panel in PARTS["epochs"](rows).panels]
    assert "snli, local, 1,000 items" in titles
    clashing = [title for title in titles if title.startswith("ner, local, 1,000 items, data ")]
    assert len({*clashing}) == 2
