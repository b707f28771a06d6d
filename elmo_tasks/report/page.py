"""One HTML page that opens from disk: tables, figures, and every run with filters. It asks no server for anything.

Rows are untrusted: all that is taken from them is escaped, and the page's policy lets no script run but its own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from pathlib import Path

from elmo_tasks.report.drawing import Drawing, inline
from elmo_tasks.report.grid import Grid, html
from elmo_tasks.report.rows import Rows
from elmo_tasks.report.runs import run_list

_STYLE = Path(__file__).with_name("page.css").read_text("utf-8")
_SCRIPT = Path(__file__).with_name("page.js").read_text("utf-8")


@dataclass(frozen=True)
class Section:
    """A part of the page: tables, then figures."""

    title: str
    grids: list[Grid] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)


def page(sections: Sequence[Section], rows: Rows, title: str = "ELMo downstream tasks") -> str:
    """The whole page.

    Args:
        sections: shown in this order, before the list of runs.
        rows: every run goes into the list, failed ones too; files that were left out are named below it.
        title: of the page.
    """
    names = [(f"section-{i}", section.title) for i, section in enumerate(sections, start=1)] + [("runs", "Runs")]
    contents = "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in names)
    parts = [_section(name, section) for (name, _), section in zip(names, sections, strict=False)]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{_STYLE}</style>\n</head>\n<body>",
            f"<header>\n<h1>{escape(title)}</h1>\n<p>{escape(_counts(rows))}</p>",
            f'<nav aria-label="Contents"><ol>{contents}</ol></nav>\n</header>\n<main>',
            *parts,
            f'<section id="runs">\n<h2>Runs</h2>\n{run_list(rows)}\n</section>',
            f"</main>\n<script>{_SCRIPT}</script>\n</body>\n</html>\n",
        ]
    )


def _section(name: str, section: Section) -> str:
    grids = "\n".join(html(grid, titled=grid.title != section.title) for grid in section.grids)
    drawings = "\n".join(
        f'<figure class="drawing">{inline(drawing)}<figcaption>{escape(drawing.title)}</figcaption></figure>'
        for drawing in section.drawings
    )
    return f'<section id="{name}">\n<h2>{escape(section.title)}</h2>\n{grids}\n{drawings}\n</section>'


def _counts(rows: Rows) -> str:
    counts = [f"{len(rows.finished)} finished runs", f"{len(rows.failed)} failed", f"{len(rows.left_out)} left out"]
    return ", ".join(counts) + "."


def _policy() -> str:
    digest = b64encode(sha256(_SCRIPT.encode("utf-8")).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
