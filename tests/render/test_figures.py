"""The numbers of the figures are read back from the drawn SVG, by way of its tick labels, and computed once more."""

import hashlib
import io
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from elmo_tasks.errors import UserError
from elmo_tasks.render.charts import gain_figure, hatching
from elmo_tasks.render.drawing import Drawing, draw, inline, style
from elmo_tasks.render.figures import COLOUR, isolated, line_figure
from elmo_tasks.render.sections import draw_all
from elmo_tasks.render.series import Curve, Pair, Panel, drawable, gap, point
from elmo_tasks.rows.collection import Rows
from elmo_tasks.rows.io import to_json
from elmo_tasks.rows.schema import Row
from elmo_tasks.tables.report_sections import PARTS

image = pytest.importorskip("matplotlib.image")

MakeRow = Callable[..., Row]
REPO = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"

Points = list[tuple[float, float]]


class Axes:
    """One panel of a drawn SVG, read with no help from matplotlib."""

    def __init__(self, svg: str, number: int = 1) -> None:
        self.root = ElementTree.fromstring(svg)
        (self.group,) = self.root.findall(f".//{SVG}g[@id='axes_{number}']")
        self.texts = [text.text or "" for text in self.group.iter(f"{SVG}text")]
        self.x, self.y = self._ticks("x"), self._ticks("y")

    def _ticks(self, axis: str) -> list[tuple[float, float]]:
        """Place and label of each tick."""
        ticks = []
        for group in self.group.iter(f"{SVG}g"):
            if re.match(f"{axis}tick_", group.get("id", "")):
                (mark,) = group.iter(f"{SVG}use")
                (label,) = group.iter(f"{SVG}text")
                ticks.append((float(mark.get(axis, "")), float((label.text or "").replace("\N{MINUS SIGN}", "-"))))
        return ticks

    def value(self, y: float) -> float:
        (y0, v0), *_, (y1, v1) = self.y
        return v0 + (y - y0) * (v1 - v0) / (y1 - y0)

    def at(self, x: float) -> float:
        """The x of a place: that of the tick there, or else between the first and the last."""
        (x0, v0), *_, (x1, v1) = self.x
        near = [value for place, value in self.x if math.isclose(place, x, abs_tol=1e-3)]
        return near[0] if near else v0 + (x - x0) * (v1 - v0) / (x1 - x0)

    def _line(self, placement: str) -> tuple[list[ElementTree.Element], list[ElementTree.Element]]:
        """Marks and strokes of the line in this placement's colour."""
        for group in self.group.findall(f"{SVG}g"):
            marks = [use for use in group.iter(f"{SVG}use") if COLOUR[placement] in use.get("style", "")]
            if group.get("id", "").startswith("line2d") and marks:
                return marks, [path for path in group.iter(f"{SVG}path") if "fill: none" in path.get("style", "")]
        return [], []

    def curve(self, placement: str) -> Points:
        """The marked points of the line in this placement's colour."""
        marks, _ = self._line(placement)
        return [(round(self.at(float(m.get("x", ""))), 3), self.value(float(m.get("y", "")))) for m in marks]

    def pieces(self, placement: str) -> int:
        """Of how many unbroken pieces that line is made."""
        _, strokes = self._line(placement)
        return sum(path.get("d", "").count("M") for path in strokes)

    def band(self, placement: str) -> Points:
        """Lower and upper edge of the band at each x, in one list."""
        for group in self.group.findall(f"{SVG}g"):
            if "FillBetween" not in group.get("id", "") and "PolyCollection" not in group.get("id", ""):
                continue
            (path,), (use,) = group.iter(f"{SVG}path"), group.iter(f"{SVG}use")
            if f"fill: {COLOUR[placement]}" in use.get("style", ""):
                shift = float(use.get("y", ""))
                numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d", ""))]
                pairs = zip(numbers[::2], numbers[1::2], strict=True)
                return sorted({(round(self.at(x), 3), round(self.value(y + shift), 3)) for x, y in pairs})
        return []


def collect(rows: list[Row]) -> Rows:
    return Rows((), rows, [], [])


def figures(rows: list[Row]) -> list[Drawing]:
    return draw_all([part(collect(rows)) for part in PARTS.values()])


def drawn(rows: list[Row], part: str) -> Drawing:
    (drawing,) = draw_all([PARTS[part](collect(rows))])
    return drawing


def panels(rows: list[Row], part: str) -> list[Panel]:
    return [*PARTS[part](collect(rows)).panels]


def expected(values: dict[float, list[float]]) -> tuple[Points, Points]:
    """Means, and the edges of the band."""
    means = [(x, float(np.mean(v))) for x, v in sorted(values.items())]
    edges = [
        (x, round(float(np.mean(v) + sign * np.std(v, ddof=1)), 3))
        for x, v in sorted(values.items())
        for sign in (-1, 1)
    ]
    return means, sorted(edges)


def assert_close(found: Points, wanted: Points) -> None:
    assert len(found) == len(wanted) > 0
    assert np.allclose(found, wanted, atol=2e-3), (found, wanted)


def test_the_share_figure_shows_mean_and_deviation_at_each_share(make_row: MakeRow) -> None:
    elmo = {1.0: [40.0, 44.0], 10.0: [60.0, 61.0], 100.0: [70.0, 75.5]}
    base = {1.0: [20.0, 25.0], 10.0: [45.0, 44.0], 100.0: [69.0, 70.0]}
    rows = [
        make_row(seed, score, placement=placement, used=int(10 * share))
        for placement, scores in (("input", elmo), ("none", base))
        for share, values in scores.items()
        for seed, score in enumerate(values)
    ]
    axes = Axes(drawn(rows, "shares").svg)
    assert [label for _, label in axes.x] == [1, 10, 100]
    steps = np.diff([place for place, _ in axes.x])
    assert math.isclose(steps[0], steps[1], abs_tol=1e-3)  # a logarithmic axis
    for placement, scores in (("input", elmo), ("none", base)):
        means, edges = expected(scores)
        assert_close(axes.curve(placement), means)
        assert_close(axes.band(placement), edges)
    assert {"share of training items (%)", "dev f1", "baseline", "input"} <= set(axes.texts)


def test_a_line_breaks_where_a_number_is_missing() -> None:
    whole = Curve("none", "none", [point(x, [20.0]) for x in (1, 2, 5, 10)])
    broken = Curve("both", "both", [point(1, [30.0]), point(2, [40.0]), gap(5), point(10, [50.0])])
    with style():
        figure = line_figure([Panel("SNLI", "accuracy", [whole, broken])], "share")
        assert figure is not None
        axes = Axes(draw("share", "", figure).svg)
    assert_close(axes.curve("both"), [(1, 30.0), (2, 40.0), (10, 50.0)])
    assert (axes.pieces("none"), axes.pieces("both")) == (1, 2)


def test_the_epoch_figure_goes_as_far_as_every_seed_got(make_row: MakeRow) -> None:
    rows = [make_row(1, [10.0, 20.0, 50.0]), make_row(2, [20.0, 24.0]), make_row(3, [12.0, 28.0, 90.0])]
    rows.append(make_row(1, [5.0, 6.0], placement="none"))
    axes = Axes(drawn(rows, "epochs").svg)
    means, edges = expected({1.0: [10.0, 20.0, 12.0], 2.0: [20.0, 24.0, 28.0]})
    assert_close(axes.curve("input"), means)
    assert_close(axes.band("input"), edges)
    assert_close(axes.curve("none"), [(1.0, 5.0), (2.0, 6.0)])
    assert axes.band("none") == []  # one seed has no deviation


def test_an_epoch_with_several_scores_counts_with_its_last(make_row: MakeRow) -> None:
    changes = {"training.curve.1.epoch": 1, "training.curve.2.epoch": 2}
    (panel,) = panels([make_row(1, [10.0, 20.0, 30.0], changes=changes)], "epochs")
    assert [(p.x, p.mean) for p in panel.curves[0].points] == [(1, 20.0), (2, 30.0)]


def test_a_panel_of_single_points_is_not_drawn(make_row: MakeRow) -> None:
    rows = [make_row(1, 10.0), make_row(1, 20.0, placement="none")]
    assert len(panels(rows, "epochs")) == 1
    assert drawable(panels(rows, "epochs")) == []
    assert "training-curves" not in [drawing.name for drawing in figures(rows)]


def test_a_point_between_two_gaps_has_an_error_bar() -> None:
    points = [point(1, [10.0, 20.0]), gap(2), point(3, [30.0, 40.0]), point(4, [50.0, 51.0]), gap(5), point(6, [7.0])]
    assert [p.x for p in isolated(points)] == [1]
    with style():
        figure = line_figure([Panel("SNLI", "accuracy", [Curve("both", "both", points)])], "epoch")
        assert figure is not None
        (bars,) = figure.axes[0].containers
        ((x, low), (_, high)) = bars.lines[2][0].get_segments()[0]
    assert (x, low, high) == pytest.approx((1, 15 - 7.0711, 15 + 7.0711), abs=1e-3)


def test_the_gain_chart_shows_both_scores_their_deviations_and_the_gain() -> None:
    pairs = [
        Pair("SNLI", point(0, [50.0, 52.0]), point(0, [60.0, 64.0]), 11.5),  # of fewer seeds than the means
        Pair("NER", point(0, [80.0]), point(0, [79.0]), -1.0, rising=True),
    ]
    with style():
        figure = gain_figure(pairs)
        assert figure is not None
        (axes,) = figure.axes
        texts = [text.get_text() for text in axes.texts]
        places = [tuple(map(float, one.lines[0].get_xydata()[0])) for one in axes.containers]
        bars = [one.lines[2][0].get_segments()[0] for one in axes.containers if one.has_xerr]
    assert texts == ["+11.5", "-1.0*"]
    assert axes.get_xlabel() == "score (* not converged)"
    assert places == [(51.0, 0.0), (62.0, 0.0), (80.0, 1.0), (79.0, 1.0)]
    assert [tuple(segment[:, 0]) for segment in bars] == [
        pytest.approx((51 - 2**0.5, 51 + 2**0.5)),
        pytest.approx((62 - 8**0.5, 62 + 8**0.5)),
    ]
    assert gain_figure([]) is None


def test_nothing_of_a_picture_is_cut_off() -> None:
    pairs = [Pair("A name of some length", point(0, [50.0]), point(0, [60.0]), 10.0) for _ in range(3)]
    with style():
        figure = gain_figure(pairs)
        assert figure is not None
        picture = image.imread(io.BytesIO(draw("gain", "", figure).png))[:, :, :3]
    inked = (picture < 0.9).any(axis=2)  # [height, width]
    for side in (inked, inked[::-1], inked.T, inked.T[::-1]):
        (first, *_) = np.flatnonzero(side.any(axis=1))
        assert 10 <= first <= 40  # of about 20 pixels


def test_the_lambda_figure_has_a_place_for_zero_and_the_baseline_at_every_lambda(make_row: MakeRow) -> None:
    scores = {0.0: [60.0, 62.0], 0.001: [70.0, 71.0], 1.0: [50.0, 40.0]}
    rows = [make_row(seed, v, l2=l2) for l2, values in scores.items() for seed, v in enumerate(values)]
    rows += [make_row(seed, v, placement="none", l2=5.0 * seed) for seed, v in enumerate([30.0, 34.0])]
    rows.append(make_row(1, 99.0, placement="output"))  # one lambda only: no curve
    axes = Axes(drawn(rows, "lambdas").svg)
    assert [label for _, label in axes.x] == [0, 0.001, 1]
    assert sorted(axes.x) == axes.x
    means, edges = expected(scores)
    assert_close(axes.curve("input"), means)
    assert_close(axes.band("input"), edges)
    assert_close(axes.curve("none"), [(x, 32.0) for x in scores])
    assert axes.curve("output") == []


def test_a_fixed_mix_is_not_on_the_lambda_axis(make_row: MakeRow) -> None:
    fixed = {"elmo.mix": "last", "config.elmo.mix": "last"}
    rows = [make_row(1, 60.0, l2=0.0), make_row(1, 61.0, l2=1.0), make_row(2, 10.0, l2=1.0, changes=fixed)]
    (panel,) = panels(rows, "lambdas")
    assert [(p.x, p.mean, p.n) for c in panel.curves for p in c.points] == [(0.0, 60.0, 1), (1.0, 61.0, 1)]


def test_the_weight_figure_prints_means_and_marks_them_as_the_paper_does(make_row: MakeRow) -> None:
    rows = [
        make_row(1, 0.0, placement="both", s=(0.7, 0.2, 0.1)),
        make_row(2, 0.0, placement="both", s=(0.72, 0.18, 0.1)),
    ]
    rows.append(make_row(1, 0.0, task="snli", s=(0.34, 0.33, 0.33)))
    svg = drawn(rows, "weights").svg
    upper, lower = Axes.__new__(Axes), Axes.__new__(Axes)
    for axes, number in ((upper, 1), (lower, 2)):
        axes.root = ElementTree.fromstring(svg)
        (axes.group,) = axes.root.findall(f".//{SVG}g[@id='axes_{number}']")
    texts = [text.text for text in upper.group.iter(f"{SVG}text")]
    means = [f"{np.mean(pair):.3f}" for pair in ((0.7, 0.72), (0.2, 0.18), (0.1, 0.1))]
    assert texts[:4] == ["layer 0", "layer 1", "layer 2", "gamma"]
    assert [t for t in texts if re.fullmatch(r"\d\.\d\d\d?", t or "")] == [
        *means,
        "2.50",
        "0.340",
        "0.330",
        "0.330",
        "2.00",
    ]
    assert {"input ELMo", "ner", "snli"} <= set(texts)
    assert "output ELMo" in [text.text for text in lower.group.iter(f"{SVG}text")]
    hatched = [p for p in upper.group.iter(f"{SVG}path") if "url(#" in p.get("style", "")]
    assert len(hatched) == 5  # speckled, hatched, hatched; plain, hatched, hatched
    found = [hatching(s) for s in (0.0, 0.333, 1 / 3, 0.5, 2 / 3, 0.667, 1.0)]
    assert found == ["hatched"] * 2 + [""] * 3 + ["speckled"] * 2


def test_mixes_are_kept_apart_by_setting_and_averaged_over_seeds(make_row: MakeRow) -> None:
    rows = [make_row(seed, 0.0, l2=l2, s=(l2, 1 - l2)) for seed in (1, 2) for l2 in (0.0, 1.0)]
    found = PARTS["weights"](collect(rows)).mixes
    assert [(mix.place, mix.s, mix.gamma, mix.n) for mix in found] == [
        ("input", [0.0, 1.0], 2.5, 2),
        ("input", [1.0, 0.0], 2.5, 2),
    ]
    assert "lambda 0" in found[0].name
    assert "lambda 1" in found[1].name


@pytest.mark.parametrize(
    "changes",
    [
        {"config.task.size": 5},
        {"config.words.dim": 9},
        {"config.trainer.max_epochs": 1},
        {"config.trainer.val_check_interval": 5},
        {"data.digest": "eeeeeeee"},
    ],
)
def test_another_model_or_data_is_another_panel(make_row: MakeRow, changes: dict[str, Any]) -> None:
    found = panels([make_row(1, 80.0), make_row(2, 90.0, changes=changes)], "epochs")
    assert len(found) == len({panel.title for panel in found}) == 2


def test_another_bilm_is_another_curve(make_row: MakeRow) -> None:
    other = make_row(2, 90.0, changes={"bilm.digest": "cccccccc", "config.bilm.name": "other"})
    (panel,) = panels([make_row(1, 80.0), other], "epochs")
    assert len({curve.name for curve in panel.curves}) == 2
    assert {p.n for curve in panel.curves for p in curve.points} == {1}


def test_ensembles_and_language_models_are_in_no_figure(make_row: MakeRow, make_lm_row: MakeRow) -> None:
    assert figures([make_row(1, 80.0, members=[1, 2]), make_lm_row(2, None, 80.0)]) == []


def test_the_same_rows_give_the_same_bytes_in_another_process(make_row: MakeRow, tmp_path: Path) -> None:
    code = (
        "import hashlib, json, sys; from test_figures import figures; from elmo_tasks.rows.io import from_json;"
        "rows = [from_json(row, '') for row in json.load(sys.stdin)];"
        "print([hashlib.sha256(d.svg.encode() + d.png).hexdigest() for d in figures(rows)])"
    )
    rows = [make_row(1, [10.0, 20.0], placement="both"), make_row(1, [20.0, 30.0], placement="none")]
    here = os.pathsep.join((str(REPO), str(Path(__file__).parent), str(REPO / "tests")))
    environment = {"PATH": "", "PYTHONHASHSEED": "7", "MPLCONFIGDIR": str(tmp_path), "PYTHONPATH": here}
    texts = json.dumps([*map(to_json, rows)])
    done = subprocess.run([sys.executable, "-c", code], input=texts, env=environment, capture_output=True, text=True)
    found = [hashlib.sha256(d.svg.encode() + d.png).hexdigest() for d in figures(rows)]
    assert done.stdout.strip() == str(found), done.stderr
    assert len(found) == 3


def test_a_drawing_for_a_page_keeps_its_ids_to_itself(make_row: MakeRow) -> None:
    made = [inline(d) for d in figures([make_row(1, [1.0, 2.0], placement=p) for p in ("both", "none")])]
    ids = [re.findall(r'\bid="([^"]+)"', element) for element in made]
    assert not set(ids[0]) & set(ids[1])
    for element, own in zip(made, ids, strict=True):
        assert len(own) == len(set(own))
        assert set(re.findall(r'(?:href="|url\()#([^")]+)', element)) <= set(own)
        assert "http" not in element
        assert "currentColor" in element


def test_without_matplotlib_the_extra_is_named(make_row: MakeRow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install -e '\.\[report\]'"):
        figures([make_row(1, [80.0, 81.0])])


def test_a_curve_of_shares_has_two_of_them_and_they_are_labelled_as_meant(make_row: MakeRow) -> None:
    rows = [make_row(1, used / 10, placement=p, used=used) for used in (995, 124, 10) for p in ("none", "input")]
    rows.append(make_row(1, 99.0, placement="both", used=995))  # at one share alone
    (panel,) = panels(rows, "shares")
    assert [curve.placement for curve in panel.curves] == ["none", "input"]
    assert [label for _, label in Axes(drawn(rows, "shares").svg).x] == [1, 12.4, 100]
    assert panels([make_row(1, 50.0, used=10), make_row(1, 50.0, placement="none", used=995)], "shares") == []


def test_a_name_in_a_figure_is_neither_a_formula_nor_a_tag(make_row: MakeRow) -> None:
    name = "$a_b$ <script> & </svg>"
    svg = drawn([make_row(1, [1.0, 2.0], task=name)], "epochs").svg
    assert any(name in text for text in Axes(svg).texts)
    assert "<script" not in inline(Drawing("x", "t", svg))
