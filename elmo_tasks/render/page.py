"""One HTML page that opens from disk: figures, tables, and every run with filters. It loads nothing from a server.

Rows are untrusted: all that is taken from them is escaped, and the page's policy lets no script run but its own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path

from elmo_tasks.render.drawing import Drawing, inline
from elmo_tasks.render.grid import html
from elmo_tasks.render.runs import filters, run_list
from elmo_tasks.render.sections import Section, draw_apart
from elmo_tasks.rows.collection import Rows

_STYLE = Path(__file__).with_name("page.css").read_text("utf-8")
_SCRIPT = Path(__file__).with_name("page.js").read_text("utf-8")


def page(sections: Sequence[Section], rows: Rows, title: str = "ELMo downstream tasks") -> str:
    """The whole page.

    Args:
        sections: shown in this order, before the list of runs.
        rows: every run is listed, failed ones too; files that were left out are named below.
        title: of the page.
    """
    titles = [section.grid.title.split(":")[0] for section in sections]
    names = [(f"section-{i}", text) for i, text in enumerate(titles, start=1)] + [("runs", "Runs")]
    contents = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in names)
    drawn = zip(names, sections, draw_apart(sections), strict=False)
    parts = [_section(name, section, drawings) for (name, _), section, drawings in drawn]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_STYLE}</style>\n</head>\n<body>",
            f"<header>\n<h1>{escape(title)}</h1>\n<p>{_counts(rows)}</p>",
            f'<nav aria-label="Contents"><ol>{contents}</ol></nav>\n{filters(rows)}\n</header>\n<main>',
            *parts,
            f'<section id="runs">\n<h2>Runs</h2>\n{run_list(rows)}\n</section>',
            f"</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )


def _section(name: str, section: Section, drawings: list[Drawing]) -> str:
    grid = html(section.grid, titled=False)
    panels = [drawing for drawing in drawings if drawing.tags]
    whole = "\n".join(_drawing(drawing) for drawing in drawings if not drawing.tags)
    if panels:
        caption = f"<figcaption>{escape(panels[0].title)}</figcaption>"
        figures = "\n".join(_drawing(panel, captioned=False) for panel in panels)
        whole += f'\n<div class="panels">{figures}</div>{caption}'
    if section.axis == "epoch":
        whole = f"<details><summary>{len(panels)} charts</summary>{whole}</details>"
    return f'<section id="{name}">\n<h2>{escape(section.grid.title)}</h2>\n{whole}\n{grid}\n</section>'


def _drawing(drawing: Drawing, *, captioned: bool = True) -> str:
    tags = "".join(f' data-{escape(key)}="{escape(value)}"' for key, value in drawing.tags.items())
    caption = f"<figcaption>{escape(drawing.title)}</figcaption>" if captioned else ""
    return f'<figure class="drawing"{tags}>{inline(drawing)}{caption}</figure>'


def _counts(rows: Rows) -> str:
    counts = [f"{len(rows.finished)} finished runs", f"{len(rows.failed)} failed", f"{len(rows.left_out)} left out"]
    return ", ".join(counts) + "."


def _policy() -> str:
    digest = b64encode(sha256(_SCRIPT.encode("utf-8")).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
