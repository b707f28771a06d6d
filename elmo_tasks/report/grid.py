"""A table as text cells, as Markdown and as HTML. Every cell is untrusted: what means something is escaped."""

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
    """

    title: str
    header: list[str]
    lines: list[list[str]]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for line in self.lines:
            if len(line) != len(self.header):
                raise ValueError(f"table {self.title!r}: {len(line)} cells in a line below {len(self.header)} headings")


def markdown(grid: Grid) -> str:
    """The table and, as a list, its notes in Markdown, without the title."""
    lines = [grid.header, ["---"] * len(grid.header), *grid.lines]
    table = "\n".join(
        f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )
    notes = "\n".join(f"- {one_line(note)}" for note in grid.notes)
    return f"{table}\n\n{notes}" if notes else table


def html(grid: Grid, *, titled: bool = True) -> str:
    """A ``figure`` with the table, its notes and, unless it stands above it anyway, its title."""
    sides = [' class="number"' if right else "" for right in numeric(grid)]

    def line(tag: str, cells: list[str]) -> str:
        return f"<tr>{''.join(f'<{tag}{side}>{escape(c)}</{tag}>' for side, c in zip(sides, cells, strict=True))}</tr>"

    notes = "".join(f"<p>{escape(note)}</p>" for note in grid.notes)
    return "\n".join(
        [
            '<figure class="grid">',
            *([f"<figcaption>{escape(grid.title)}</figcaption>"] if titled else []),
            f"<table>\n<thead>{line('th', grid.header)}</thead>\n<tbody>",
            *(line("td", cells) for cells in grid.lines),
            "</tbody>\n</table>",
            f"{notes}</figure>",
        ]
    )


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def numeric(grid: Grid) -> list[bool]:
    """Which columns hold numbers alone (a dash stands for none), to be set to the right."""
    number = re.compile(r"[-+]?[\d,.]+( ± [\d.]+)?|-|")
    return [all(number.fullmatch(line[column]) for line in grid.lines) for column in range(len(grid.header))]
