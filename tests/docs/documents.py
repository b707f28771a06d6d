"""The commands, examples and links of README.md, docs/ and CONTRIBUTING.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPO = Path(__file__).parents[2]
DOCUMENTS = [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "docs").glob("*.md"))]


class Command(NamedTuple):
    """A line of a block of shell commands."""

    document: str
    line: str


def blocks(document: Path, language: str) -> list[str]:
    """The contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def commands(language: str) -> Iterator[Command]:
    """Each command once, without its comment; parts that are joined by && are commands of their own."""
    seen = set()
    for document in DOCUMENTS:
        for line in "".join(blocks(document, language)).splitlines():
            for part in map(str.strip, re.sub(r"(^|\s)#.*$", "", line).split("&&")):
                if part and part not in seen:
                    seen.add(part)
                    yield Command(document.name, part)


def anchors(document: Path) -> set[str]:
    """The names that a link can end in, as GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", _without_blocks(document), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(document: Path) -> list[str]:
    """The targets of a document's links that lead to files."""
    found = re.findall(r"\]\(([^)\s]+)\)", _without_blocks(document))
    return [target for target in found if "://" not in target]


def _without_blocks(document: Path) -> str:
    return re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
