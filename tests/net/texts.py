"""What the frozen rows say: every table, the claims, the report, the runs that are missing."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from .checkout import Call, Checkout, words

CHOICES = (
    ("table", "table1", "tasks=ner,snli"),
    ("table", "table1", "seeds=1"),
    ("table", "table3", "data=sample"),
    ("table", "table2", "scale=paper", "bilm=small", "--missing"),
    ("table", "figure2", "fraction=0.5", "--missing"),
    ("table", "table1", "elmo.lambda=1", "trainer.max_epochs=3", "--missing"),
)
"""Tables of other settings than the declared ones."""

FILES = (
    words("report rows --csv report.csv --html report.html --latex report-latex --figures report-figures"),
    words("table paper rows=rows --csv paper.csv --html paper.html --latex latex --figures figures"),
)
"""Commands that write files. Pictures are recorded by the digest of their bytes, without dates."""


def record(checkout: Checkout) -> dict[str, Any]:
    """The text that each command prints or writes, by command or file."""
    names = sorted(path.stem for path in (checkout.folder / "experiments").glob("[a-z]*.py"))
    tables = [("table", name, *more) for more in ((), ("--missing",)) for name in names]
    lines = [("table",), ("report", "rows"), *((*line, "rows=rows") for line in (*tables, *CHOICES)), *FILES]
    calls = [Call(" ".join(line), "run", line) for line in lines]
    found: dict[str, Any] = {}
    for call, answer in checkout.ask(calls, alone=False):
        print(f"{answer['seconds']:7.2f} CPU seconds  {call.name}", file=sys.stderr)
        found[call.name] = answer["out"] + answer["err"] + (f"status {answer['status']}\n" if answer["status"] else "")
    for path in sorted(checkout.work.rglob("*")):
        place = path.relative_to(checkout.work)
        if place.parts[0] in ("report.csv", "report.html", "paper.csv", "paper.html") or "latex" in str(place):
            found |= _content(checkout, path, str(place))
        elif "figures" in place.parts[0] and path.suffix == ".svg":
            found[str(place)] = hashlib.sha256(checkout.plain(path.read_text("utf-8")).encode()).hexdigest()
    return found


def _content(checkout: Checkout, path: Path, name: str) -> dict[str, str]:
    return {name: checkout.plain(path.read_text("utf-8"))} if path.is_file() else {}
