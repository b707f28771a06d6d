"""A table as text cells, as Markdown and as HTML. Cells are untrusted: special characters are escaped."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Grid:
    """A table.

    Args:
        title: what stands above it.
        header: one text a column.
        lines: cells, as long as the header.
        notes: sentences below it.
        tags: for each line what a page's filters choose by; none for a table that they do not reach.
    """

    title: str
    header: list[str] = field(default_factory=list)
    lines: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tags: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for line in self.lines:
            if len(line) != len(self.header):
                raise ValueError(f"table {self.title!r}: {len(line)} cells in a line below {len(self.header)} headings")


def markdown(grid: Grid) -> str:
    """The table and, as a list, its notes in Markdown, without the title."""
    lines = [map(markdown_text, grid.header), ["---"] * len(grid.header)]
    lines += [map(markdown_text, line) for line in grid.lines]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines) if grid.header else ""
    notes = "\n".join(f"- {markdown_text(note)}" for note in grid.notes)
    return "\n\n".join(part for part in (table, notes) if part)


def markdown_text(text: str) -> str:
    """Any text on one line, escaped so that Markdown shows it literally: no tag, link, emphasis, formula or column."""
    text = re.sub(r"&(?=#?\w+;)", "&amp;", one_line(text))  # elsewhere these three are themselves: p < 0.05
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)
    text = re.sub(r"^>", "&gt;", text)
    text = re.sub(r"[\\`*~$|]", r"\\\g<0>", text)
    text = re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text)  # within a word it is no emphasis
    text = text.replace("](", r"]\(")
    return re.sub(r"^([#+-])(?= )", r"\\\1", text)


def html(grid: Grid, *, titled: bool = True) -> str:
    """A ``figure`` with the table, its notes and, unless it stands above it anyway, its title."""
    sides = [' class="number"' if right else "" for right in numeric(grid)]

    def line(tag: str, cells: list[str], tags: dict[str, str]) -> str:
        data = "".join(f' data-{escape(key)}="{escape(value)}"' for key, value in tags.items())
        texts = (f"<{tag}{side}>{_html_text(cell)}</{tag}>" for side, cell in zip(sides, cells, strict=True))
        return f"<tr{data}>{''.join(texts)}</tr>"

    tags = grid.tags or [{}] * len(grid.lines)
    table = [f"<table>\n<thead>{line('th', grid.header, {})}</thead>\n<tbody>"]
    table += [line("td", *pair) for pair in zip(grid.lines, tags, strict=True)]
    table.append("</tbody>\n</table>")
    notes = "".join(f"<li>{escape(note)}</li>" for note in grid.notes)
    return "\n".join(
        [
            '<figure class="grid">',
            *([f"<figcaption>{escape(grid.title)}</figcaption>"] if titled else []),
            *(['<div class="scroll">', *table, "</div>"] if grid.header else []),
            f'<ul class="notes">{notes}</ul></figure>' if notes else "</figure>",
        ]
    )


def _html_text(text: str) -> str:
    """The text, a mean and its deviation on one line."""
    return escape(text).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def numeric(grid: Grid) -> list[bool]:
    """Which columns hold numbers alone (a dash stands for none), to be aligned to the right."""
    number = re.compile(r"[-+]?[\d,.]+(\s±\s[\d.]+)?|-|")
    return [all(number.fullmatch(line[column]) for line in grid.lines) for column in range(len(grid.header))]
