"""A table as data, and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Grid:
    """What a renderer needs of a table: texts alone."""

    title: str
    header: list[str]
    lines: list[list[str]]
    notes: list[str] = field(default_factory=list)


def markdown(grid: Grid) -> str:
    """A title in bold, the table, and its notes as a list."""
    parts = [f"**{grid.title}**"]
    if grid.lines:
        rows = [grid.header, ["---"] * len(grid.header), *grid.lines]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    if grid.notes:
        parts.append("\n".join(f"- {note}" for note in grid.notes))
    return "\n\n".join(parts)
