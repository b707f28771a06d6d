"""A finished figure as SVG and PNG; the same rows give the same bytes. The only file that needs matplotlib to draw."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from elmo_tasks.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1b1f24"  # of text, axes and the baseline; the page replaces it by its own
DPI = 200
MARGIN = 0.1  # inches around what is drawn


@dataclass(frozen=True)
class Drawing:
    """A rendered figure.

    Args:
        name: of its files, without the suffix.
        title: its caption.
        svg: a whole SVG document.
        png: the same picture; empty if only the SVG was asked for.
        tags: what a page's filters choose by.
        parts: the same for parts of the picture, the elements whose ids begin with ``part-0-``, ``part-1-``, ...
    """

    name: str
    title: str
    svg: str
    png: bytes = b""
    tags: dict[str, str] = field(default_factory=dict)
    parts: tuple[dict[str, str], ...] = ()


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's settings within which figures are made and rendered.

    Raises:
        UserError: if matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise UserError("figures need the extra `report`: pip install -e '.[report]'") from error
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # not what a matplotlibrc on this machine says
        matplotlib.rcParams.update(
            {
                "svg.fonttype": "none",  # text stays text
                "svg.hashsalt": "elmo_tasks",
                "text.parse_math": False,  # a name with a dollar sign is no formula
                "font.family": "sans-serif",
                "font.size": 9,
                "axes.titlesize": 9,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "axes.grid": True,
                "grid.alpha": 0.12,
                "axes.axisbelow": True,
                "legend.frameon": False,
                "hatch.linewidth": 0.6,
                **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
                "grid.color": INK,
            }
        )
        yield


def draw(name: str, title: str, figure: Figure, *, png: bool = True, parts: tuple[dict[str, str], ...] = ()) -> Drawing:
    """Render a figure; to be called within :func:`style`, as what made the figure was."""
    figure.draw_without_rendering()
    # The layout is found. With a layout engine or bbox_inches="tight" savefig would draw twice, to find it again.
    figure.set_layout_engine(None)
    box = figure.get_tightbbox().padded(MARGIN)
    vector, raster = io.StringIO(), io.BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(vector, format="svg", metadata=nothing, bbox_inches=box)
    if png:
        figure.savefig(raster, format="png", metadata={"Software": None}, dpi=DPI, bbox_inches=box)
    return Drawing(name, title, vector.getvalue(), raster.getvalue(), parts=parts)


def drawing_files(drawings: Iterable[Drawing]) -> dict[str, bytes]:
    """``NAME.svg`` and ``NAME.png`` for each figure."""
    files: dict[str, bytes] = {}
    for drawing in drawings:
        files |= {f"{drawing.name}.svg": drawing.svg.encode("utf-8"), f"{drawing.name}.png": drawing.png}
    return files


def inline(drawing: Drawing) -> str:
    """The SVG as an element for an HTML page: no namespaces, ids of its own, ink in the page's colour."""
    root = ElementTree.fromstring(drawing.svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for key, value in _part_tags(element, drawing.parts).items():
            element.set(f"data-{key}", value)
        for qualified in list(element.attrib):
            key = qualified.rpartition("}")[2]
            value = _own_ids(key, element.attrib.pop(qualified), drawing.name)
            element.set(key, value.replace(INK, "currentColor").replace("fill: #ffffff", "fill: none"))
    root.attrib.pop("version", None)
    root.set("role", "img")
    root.set("aria-label", drawing.title)
    return ElementTree.tostring(root, encoding="unicode")


def _part_tags(element: ElementTree.Element, parts: tuple[dict[str, str], ...]) -> dict[str, str]:
    part = re.match(r"part-(\d+)-", element.get("id", ""))
    return parts[int(part[1])] if part and parts else {}


def _own_ids(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return value.replace("#", f"#{name}-", 1)
    return re.sub(r"url\(#", f"url(#{name}-", value)
